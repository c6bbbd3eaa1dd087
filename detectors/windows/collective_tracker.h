// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: communicators and collectives as the calls into NCCL show them. Bounded. Single
// writer.
#pragma once

#include "detectors/model/observation.h"
#include "detectors/windows/speaker.h"

namespace rankscope::windows {

class CollectiveTracker {
 public:
  void OnEvent(const Event&, const Speaker&, Timestamp) {}
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}

  template <class A>
  void Fields(A&) {}
};

}  // namespace rankscope::windows
