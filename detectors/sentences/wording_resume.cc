// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "detectors/families/family.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

double NumberOf(std::string_view text) {
  return text.empty() ? std::nan("") : std::strtod(std::string(text).c_str(), nullptr);
}

std::string Rerun(const Evidence& e) {
  const std::string_view kind = e.Capture("kind");
  if (kind == "restart") {
    return "the scheduler has begun the job anew, " +
           families::Counted(e.observed.value_or(0), "time") + ", says its environment";
  }
  const std::string job = "job " + std::string(e.Capture("parent"));
  std::string text = "it was to begin ";
  if (kind == "afternotok") {
    text += "only if " + job + " failed";
  } else if (kind == "afterok" || kind == "aftercorr") {
    text += "only if " + job + " succeeded";
  } else if (kind == "after") {
    text += "after " + job + " had begun";
  } else {
    text += "after " + job;
  }
  const std::string_view origin = e.Capture("origin");
  return text + ", says " +
         (e.Capture("field") == "submit_line" ? "its submit line"
          : origin == "environment"           ? "its environment"
                                              : "the scheduler");
}

std::string Parent(const Evidence& e) {
  const std::string_view parent = e.Capture("parent");
  std::string text = parent.empty() ? "the run before" : "job " + std::string(parent);
  if (const std::string_view node = e.Capture("node"); !node.empty())
    text += " on " + std::string(node);
  if (e.Capture("records") == "0" && !e.observed) {
    text += " had printed no training record";
  } else {
    text += " had come to ";
    text += e.observed ? "step " + Number(*e.observed)
                       : families::Counted(NumberOf(e.Capture("records")), "training record");
    if (e.observed && e.expected) text += " of " + Number(*e.expected);
    if (const std::string_view loss = e.Capture("loss"); !loss.empty())
      text += " and loss " + std::string(loss);
  }
  if (e.Capture("finished") == "yes") text += ", said that it was done";
  const std::string_view wrote = e.Capture("wrote");
  const std::string_view step = e.Capture("saved_step");
  if (wrote.empty() && step.empty()) {
    text += ", and left no checkpoint that was seen";
  } else {
    text += ", and left " + (wrote.empty() ? std::string("a checkpoint") : std::string(wrote));
    if (!step.empty()) text += " of step " + std::string(step);
    if (const double bytes = NumberOf(e.Capture("bytes")); bytes > 0)
      text += " (" + Number(bytes / (1024.0 * 1024)) + " MiB)";
  }
  const std::string_view origin = e.Capture("origin");
  return text + ", says what is left of it " +
         (origin == "state"        ? "in this node's state directory"
          : origin == "controller" ? "beside the controller"
                                   : "in its comment");
}

}  // namespace

std::string ResumeText(const Evidence& e) {
  return e.kind == EvidenceKind::kRerun ? Rerun(e) : Parent(e);
}

}  // namespace rankscope::engine
