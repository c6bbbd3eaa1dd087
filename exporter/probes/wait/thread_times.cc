// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/thread_times.h"

#include "bpf/events/sched.h"

namespace rankscope::probes {

// Both sides of the kernel speak of the same classes.
static_assert(RS_WAITS == kWaitClasses);
static_assert(RS_RUNNABLE == static_cast<int>(WaitClass::kRunnable));
static_assert(RS_WAIT_FUTEX == static_cast<int>(WaitClass::kFutex));
static_assert(RS_WAIT_SOCKET == static_cast<int>(WaitClass::kSocket));
static_assert(RS_WAIT_NETWORK_FILE == static_cast<int>(WaitClass::kNetworkFile));
static_assert(RS_WAIT_BLOCK == static_cast<int>(WaitClass::kBlock));
static_assert(RS_WAIT_GPU == static_cast<int>(WaitClass::kGpu));
static_assert(RS_WAIT_SLEEP == static_cast<int>(WaitClass::kSleep));
static_assert(RS_STOPPED == static_cast<int>(WaitClass::kStopped));
static_assert(RS_WAIT_OTHER == static_cast<int>(WaitClass::kOther));
static_assert(RS_WAIT_FILE_LOCK == static_cast<int>(WaitClass::kFileLock));
static_assert(RS_WAIT_CHILD == static_cast<int>(WaitClass::kChild));

Duration ThreadTimes::Silent(Timestamp now) const {
  if (!IsOnCpu(state)) return silent;
  const bool on_cpu = state == WaitClass::kRunning && now > counted_to;
  const Duration going = on_cpu ? run + (now - counted_to) : run;
  return going.ns >= RS_SILENT_NS ? silent + going : silent;
}

}  // namespace rankscope::probes
