// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <cmath>

#include "detectors/families/family.h"
#include "detectors/sentences/wording.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

struct ClassWords {
  std::string_view name;
  std::string_view words;
};

constexpr std::array kClasses = {
    ClassWords{"running", "ran"},
    ClassWords{"runnable", "wanted a CPU"},
    ClassWords{"futex", "waited for a lock or for another thread"},
    ClassWords{"socket", "waited for a pipe or a socket"},
    ClassWords{"network_file", "waited for a network file system"},
    ClassWords{"block", "waited for a local file or disk"},
    ClassWords{"gpu", "waited in the GPU's driver"},
    ClassWords{"sleep", "slept"},
    ClassWords{"stopped", "was stopped"},
    ClassWords{"file_lock", "waited for a file lock"},
    ClassWords{"child", "waited for a process that it had started"},
};

std::string Words(std::string_view name) {
  for (const ClassWords& row : kClasses) {
    if (row.name == name) return std::string(row.words);
  }
  return "waited";
}

std::string Who(const Evidence& e) {
  const std::string ranks = RankList(e.ranks);
  const std::string pid = e.process.pid != 0 ? "pid " + std::to_string(e.process.pid) : "";
  if (ranks.empty()) return pid.empty() ? "a process" : pid;
  return pid.empty() ? ranks : ranks + " (" + pid + ")";
}

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

// The first of a list that ';' joins.
std::string First(std::string_view list, size_t count) {
  size_t end = 0;
  for (size_t i = 0; i < count && end != std::string_view::npos; ++i)
    end = list.find(';', i == 0 ? 0 : end + 1);
  return std::string(list.substr(0, end));
}

std::string StackText(const Evidence& e) {
  std::string text = Who(e) + " " + std::string(e.Capture("phrase"));
  const std::string_view python = e.Capture("python");
  const std::string_view stack = e.Capture("stack");
  const std::string_view wchan = e.Capture("wchan");
  const std::string_view call = e.Capture("syscall");
  std::string at;
  if (!python.empty()) at += "in " + First(python, 3);
  if (!call.empty()) {
    at += (at.empty() ? "in " : ", in ") + std::string(call);
    if (!e.Capture("fd").empty()) at += " of a " + std::string(e.Capture("fd"));
  }
  if (!stack.empty()) {
    at += (at.empty() ? "in " : ", in the kernel at ") + First(stack, 3);
  } else if (!wchan.empty()) {
    at += (at.empty() ? "in " : ", in the kernel at ") + std::string(wchan);
  }
  if (!at.empty()) text += ": its main thread stands " + at;
  if (!e.Capture("holder").empty())
    text += "; the lock is held by " + std::string(e.Capture("holder"));
  return text;
}

std::string SuspensionText(const Evidence& e) {
  const std::string seconds = Number(std::round(e.observed.value_or(0)));
  const std::string times(e.Capture("times"));
  if (!times.empty()) {
    return "the job was suspended" + (times == "1" ? "" : " " + times + " times") + " for " +
           seconds + " s" + (times == "1" ? "" : " in all") + ", which count for no silence of it";
  }
  const std::string all(e.Capture("processes"));
  const std::string whom = all == "1" ? "its process" : "all " + all + " of its processes";
  return "the job has been suspended for " + seconds + " s: " +
         (e.Capture("by") == "freezer"
              ? "the freezer of cgroups holds " + whom + " on this node"
              : whom + " on this node are stopped by a signal");
}

}  // namespace

std::string WaitText(const Evidence& e) {
  const double value = e.observed.value_or(0);
  switch (e.kind) {
    case EvidenceKind::kThreads:
      if (!e.Capture("gap").empty())
        return "for " + Number(std::round(value)) +
               " s nothing was told of any process of the node";
      return "the main thread of " + Who(e) + " " + Words(e.Capture("class")) + " at " +
             Percent(value) + " of the looks of the last " + std::string(e.Capture("seconds")) +
             " s; no thread of it has run for " + std::string(e.Capture("still")) + " s";
    case EvidenceKind::kThreadStack:
      return StackText(e);
    case EvidenceKind::kStopped:
      return Who(e) + " has been stopped for " + Number(std::round(value)) + " s, " +
             (e.Capture("tracer").empty() ? "by a signal"
                                          : "traced by " + std::string(e.Capture("tracer")));
    case EvidenceKind::kStarved:
      return "the main thread of " + Who(e) + " wanted a CPU and had none for " + Percent(value) +
             " of the last " + std::string(e.Capture("seconds")) + " s, and ran for " +
             std::string(e.Capture("running")) + " %";
    case EvidenceKind::kSuspended:
      return SuspensionText(e);
    case EvidenceKind::kStorageWait:
      return (e.Capture("who") == "main" ? "the main thread of " + Who(e)
                                         : "a process that " + Who(e) + " has started") +
             " " + Words(e.Capture("class")) + " at " + Percent(value) +
             " of the looks of the last " + std::string(e.Capture("seconds")) + " s" +
             (e.Capture("who") == "main" ? ""
                                         : ", and the rank itself for a pipe or a socket at " +
                                               std::string(e.Capture("waits")) + " %");
    default:
      return {};
  }
}

}  // namespace rankscope::engine
