// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A report of NCCL's RAS as a few numbers of the whole job. A rank of the job is in several
// communicators: it counts once, in the worst of its states there. The JSON lists every rank; the
// text names only who stands out, and the others are in the state of the largest group. Pure. Any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "detectors/reports/ras_report.h"

namespace rankscope::reports {

// From the best to the worst.
enum class RasState : uint8_t {
  kRunning,
  kFinalising,
  kInitialising,
  kMissing,  // its process answers and knows nothing of a communicator that others have
  kAborted,
  kUnresponsive,
  kDead,
};
inline constexpr size_t kRasStates = 7;

struct RasNumbers {
  std::array<int64_t, kRasStates> ranks{};  // by RasState
  int64_t errors = 0;                       // ranks of which NCCL reports an error
  // How many operations the last rank of a communicator has launched fewer than the first; the
  // largest difference in any communicator and operation.
  int64_t lag = 0;

  int64_t of(RasState state) const { return ranks[static_cast<size_t>(state)]; }
  template <class A>
  void Fields(A& a) {
    for (int64_t& count : ranks) a(count);
    a(errors, lag);
  }
};

RasNumbers NumbersOf(const RasReport& report);

}  // namespace rankscope::reports
