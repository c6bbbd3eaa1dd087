// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An incident of the judged attempt, with the part that it has in the end of the run. Pure.
#pragma once

#include <cstdint>

#include "detectors/features/evidence.h"
#include "detectors/windows/incident_log.h"

namespace rankscope::features {

// The class of an event. Of events that the clocks cannot order, the one of the earlier class
// began it: an act of the scheduler goes before hardware, a kill before what the program says of
// it, every failure before its consequences, and a disposition (a time limit, a cancel, a request
// to stop) goes last, because it ends a run and does not break it.
enum class CauseClass : uint8_t {
  kSchedulerAct,  // node failure, preemption, requeue
  kHardware,      // a GPU error that its driver or the device is to blame for
  kHostOom,
  kSignal,  // but SIGABRT and the requests to stop
  kCudaOom,
  kGpuError,  // any other
  kStorage,
  kException,
  kAbort,  // SIGABRT: the way in which C++ ends after an error
  kRendezvous,
  kCollectiveTimeout,
  kPeerLost,   // from here on an event is no failure of its own
  kTimeLimit,  // from here on an event is a disposition
  kCancelled,
  kReasonToStop,  // the program or the kernel says why it is asked to stop
  kStopRequest,   // SIGTERM, SIGINT
  kNonFiniteLoss,
  kNonZeroExit,
};

CauseClass ClassOf(const logs::Incident& incident);

// A process died, or raised: what peers that wait, or lose their connections, suffer from.
constexpr bool IsDeath(CauseClass event) {
  return event < CauseClass::kAbort;
}
// Something failed by itself: a launcher or a scheduler may clean up after it.
constexpr bool IsFailure(CauseClass event) {
  return event < CauseClass::kPeerLost;
}
// The run was ended and did not fail.
constexpr bool IsDisposition(CauseClass event) {
  return event >= CauseClass::kTimeLimit;
}

struct Cause {
  enum class Role : uint8_t {
    kInitiating,
    kSupport,
    kCascade,
    kWrapper,
    kRecovered,
    kTeardown,
    kDenied
  };

  const windows::Candidate* candidate = nullptr;  // valid as long as the window is not fed
  Role role = Role::kInitiating;
  CauseClass event = CauseClass::kSchedulerAct;
  EvidenceRef evidence = kNoEvidence;
  // The job's own text speaks of a GPU, and the log of the node's kernel, which is read, does not:
  // no driver keeps such an error to itself. kDenied where the words are all that there is.
  bool denied = false;
  int32_t quotes = 0;  // that many entries behind `evidence` quote further lines of the incident

  const logs::Incident& incident() const { return candidate->incident; }
};

}  // namespace rankscope::features
