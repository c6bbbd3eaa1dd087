// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "detectors/families/family.h"
#include "detectors/sentences/wording.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

std::string Size(double bytes) {
  constexpr double kGib = 1024.0 * 1024 * 1024, kMib = 1024.0 * 1024;
  if (bytes >= kGib) return Number(bytes / kGib) + " GiB";
  if (bytes >= kMib) return Number(bytes / kMib) + " MiB";
  return Number(bytes) + " B";
}

std::string Size(std::string_view text) {
  double bytes = 0;
  std::sscanf(std::string(text).c_str(), "%lf", &bytes);
  return Size(bytes);
}

std::string Who(const Evidence& e) {
  if (!e.ranks.empty()) return RankList(e.ranks);
  if (e.process.pid != 0) return "pid " + std::to_string(e.process.pid);
  return "a process";
}

std::string File(const Evidence& e) {
  const std::string directory(e.Capture("directory"));
  return (directory.empty() || directory == "/" ? "" : directory + "/") +
         std::string(e.Capture("file"));
}

std::string Failure(const Evidence& e) {
  const std::string call(e.Capture("call"));
  if (e.Capture("hangs") == "yes") {
    return Who(e) + " has been inside " + call + "() for " + Number(e.observed.value_or(0)) +
           " s, says the kernel";
  }
  std::string text = call + "() of " + Who(e) + " on " + File(e);
  if (const std::string_view where = e.Capture("filesystem"); !where.empty())
    text += " (" + std::string(where) + ")";
  text += " failed with " + std::string(e.Capture("errno"));
  if (e.times > 1) text += ", " + families::Counted(static_cast<double>(e.times), "time");
  return text + ", says the kernel";
}

std::string Space(const Evidence& e) {
  std::string text = e.Capture("filesystem") == "shared_memory" ? "shared memory (/dev/shm)"
                                                                : "the checkpoints' file system";
  text += " had " + Size(e.observed.value_or(0)) + " left of " + Size(e.Capture("total"));
  if (e.Capture("bus_error") == "yes")
    text += " when " + Who(e) + " got a bus error, says the kernel";
  return text;
}

std::string Checkpoint(const Evidence& e) {
  const std::string_view what = e.Capture("what");
  if (what == "missing") {
    std::string text = Who(e) + " looked for " + File(e) + ", which is not there";
    if (e.times > 1) text += ", " + families::Counted(static_cast<double>(e.times), "time");
    return text + ", says the kernel";
  }
  if (e.Capture("share") == "yes") {
    return Who(e) + " saved " + families::Counted(static_cast<double>(e.times), "checkpoint") +
           ", the last to " + File(e) + ": " + Number(100 * e.observed.value_or(0)) +
           " % of the time since the first, says the kernel";
  }
  std::string text = Who(e) + " " + std::string(what) + " " + Size(e.observed.value_or(0)) +
                     (what == "read" ? " of " : " to ") + File(e);
  if (e.Capture("complete") != "yes") text += ", which is not complete";
  return text + ", says the kernel";
}

}  // namespace

std::string StorageText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kFileError:
      return Failure(e);
    case EvidenceKind::kFileSpace:
      return Space(e);
    case EvidenceKind::kCheckpointFile:
      return Checkpoint(e);
    case EvidenceKind::kSaveCadence: {
      std::string text =
          "it says that it saved " + Number(e.observed.value_or(0)) + " times, every " +
          families::Counted(std::strtod(std::string(e.Capture("interval")).c_str(), nullptr),
                            "step");
      if (const std::string_view share = e.Capture("share"); !share.empty())
        text += ", which took " + std::string(share) + " % of the time";
      return text;
    }
    case EvidenceKind::kDataRead:
      return Who(e) + " read data, says the kernel";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
