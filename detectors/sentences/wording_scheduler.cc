// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <string>
#include <string_view>

#include "detectors/families/family.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Lasting;
using features::Evidence;
using features::EvidenceKind;

std::string If(std::string_view before, std::string_view value, std::string_view after = {}) {
  return value.empty() ? std::string()
                       : std::string(before) + std::string(value) + std::string(after);
}

constexpr std::string_view kSays = ", says the scheduler's record";

std::string EndText(const Evidence& e) {
  const std::string_view sub = e.Capture("sub");
  if (e.Capture("shape") == "scheduler_restarts")
    return "the job waits in the queue again, after " +
           families::Counted(std::strtod(std::string(e.Capture("value")).c_str(), nullptr),
                             "restart") +
           std::string(kSays);
  if (sub == "time_limit") return "the scheduler ended the run at its time limit";
  if (sub == "preemption") return "the scheduler preempted the run";
  if (sub == "requeue") return "the scheduler requeued the run";
  if (sub == "node_failure") return "the scheduler ended the run because a node failed";
  if (sub == "cancelled") return "the run was cancelled" + If(" by ", e.Capture("by"));
  return "the scheduler ended the run" + If(": ", sub);
}

std::string RunText(const Evidence& e) {
  const std::string state(e.Capture("value"));
  const std::string_view number = e.Capture("number");
  if (number.empty()) return "the job's state is now " + state + std::string(kSays);
  std::string text = "run " + std::string(number) + " of the job";
  if (e.Capture("runs") != "1") text += ", of " + std::string(e.Capture("runs"));
  text += ": " + state;
  if (e.observed) text += (state == "RUNNING" ? " for " : " after ") + Lasting(*e.observed);
  return text + If(" on ", e.Capture("nodes")) + If(", by ", e.Capture("by")) +
         If(", reason ", e.Capture("reason")) + std::string(kSays);
}

std::string NodeText(const Evidence& e) {
  return "node " + std::string(e.Capture("node")) + " is " + std::string(e.Capture("value")) +
         If(" (", e.Capture("node_class"), ")") + If(": \"", e.Capture("node_reason"), "\"") +
         std::string(kSays);
}

std::string BootText(const Evidence& e) {
  const std::string node = "node" + If(" ", e.Capture("node"));
  if (!e.Capture("another").empty())
    return node + " was booted after the run had begun: its boot id is another";
  return node + " was not booted since the run began: its boot id is the same";
}

std::string LostText(const Evidence& e) {
  const std::string time = e.observed ? Lasting(*e.observed) : std::string("some time");
  const std::string cards = If(", on ", e.Capture("gpus"), " GPUs");
  if (!e.Capture("saved").empty()) {
    return "the last checkpoint that was completed" + If(" (", e.Capture("text"), ")") +
           " had been begun " + time + " before the end: what was trained since is lost" + cards;
  }
  if (!e.Capture("sure").empty())
    return "no checkpoint was completed in " + time + " of training: all of it is lost" + cards;
  return "no checkpoint was seen to be completed in " + time +
         " of training: as far as the text tells, all of it is lost" + cards;
}

std::string FinalSaveText(const Evidence& e) {
  if (e.store != proto::STORE_KERNEL)
    return "the end came in a save that it does not say to have completed" +
           If(": ", e.Capture("text"));
  return "the end came in a save, of which " + families::Counted(e.observed.value_or(0), "file") +
         (e.expected ? " of " + families::Number(*e.expected) : std::string()) +
         " is not complete" + If(" (", e.Capture("text"), ")") + ", says the kernel";
}

std::string SuspectText(const Evidence& e) {
  const std::string node(e.Capture("node"));
  const std::string runs = families::Counted(e.observed.value_or(0), "run");
  const std::string_view failed = e.Capture("failed");
  std::string text = "suspect node " + node + ": it was in each of the " + runs +
                     " of the job that failed within " +
                     Lasting(std::strtod(std::string(e.Capture("within")).c_str(), nullptr));
  if (e.Capture("others") == "change") text += ", while the other nodes changed";
  if (!failed.empty()) text += ", and is named as the one that failed in " + std::string(failed);
  return text + std::string(kSays) +
         "; Slurm may choose the same node each time, so this alone is no cause";
}

}  // namespace

std::string SchedulerText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kSchedulerEnd:
      return EndText(e);
    case EvidenceKind::kSchedulerRun:
      return RunText(e);
    case EvidenceKind::kSchedulerRestarts:
      return "the job was put back into the queue " +
             families::Counted(e.observed.value_or(0), "time") + std::string(kSays);
    case EvidenceKind::kTimeLimit:
      return "the job's time limit is " + Lasting(e.observed.value_or(0)) + std::string(kSays);
    case EvidenceKind::kNodeState:
      return NodeText(e);
    case EvidenceKind::kBoot:
      return BootText(e);
    case EvidenceKind::kLostWork:
      return LostText(e);
    case EvidenceKind::kFinalSave:
      return FinalSaveText(e);
    case EvidenceKind::kSuspectNode:
      return SuspectText(e);
    default:
      return {};
  }
}

}  // namespace rankscope::engine
