// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what ranks ask of the CUDA runtime and driver: launches, synchronisation, copies,
// allocations. Bounded. Single writer.
#pragma once

#include "detectors/model/observation.h"
#include "detectors/windows/speaker.h"

namespace rankscope::windows {

class LaunchTracker {
 public:
  void OnEvent(const Event&, const Speaker&, Timestamp) {}
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}

  template <class A>
  void Fields(A&) {}
};

}  // namespace rankscope::windows
