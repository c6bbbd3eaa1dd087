// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: how the job's processes reach each other: connection attempts, listeners, names
// that do not resolve, retransmits. Bounded. Single writer.
#pragma once

#include "detectors/model/observation.h"
#include "detectors/windows/speaker.h"

namespace rankscope::windows {

class NetworkTracker {
 public:
  void OnEvent(const Event&, const Speaker&, Timestamp) {}
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}

  template <class A>
  void Fields(A&) {}
};

}  // namespace rankscope::windows
