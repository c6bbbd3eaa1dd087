// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a run ended, which is not what ailed it: a hang may be cancelled, and a throttled run may
// exit with 0. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/families/family.h"

namespace rankscope::families {

enum class DispositionKind : uint8_t {
  kNone,  // it runs
  kCompleted,
  kFailed,  // by itself, or one of its processes ended another
  kCancelled,
  kTimeLimit,
  kPreempted,
  kRequeued,
  kNodeLost,
  kByScheduler,  // a signal of the scheduler's, and no record that says why
  kByLauncher,
  kKilled,  // by a signal from outside of the job and of the scheduler
  kUnknown,
};

// "cancelled", "time_limit" ...; empty for kNone. A closed list: it is a label of a metric.
std::string_view DispositionName(DispositionKind kind);

struct Disposition {
  DispositionKind kind = DispositionKind::kNone;
  std::string by;      // who ended it, as far as a record or the kernel names somebody
  int64_t uid = -1;    // of him; -1 = not known
  std::string reason;  // the scheduler's word
  Timestamp at;        // 0 = not known
  features::EvidenceRef evidence = features::kNoEvidence;
};

Disposition DispositionOf(const features::JobFeatures& f);

// What a finding at the end of a run says of what ailed it.
enum class EndKind : uint8_t {
  kCause,    // something failed by itself
  kForced,   // it was ended by somebody, or nothing in the end says why
  kUnclear,  // by a signal of which nobody knows the sender
  kQuiet,    // it came to its end
};
EndKind KindOfEnd(std::string_view code, const Finding& finding, const features::JobFeatures& f);

}  // namespace rankscope::families
