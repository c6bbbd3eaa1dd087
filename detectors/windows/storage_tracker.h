// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what the job reads and writes: checkpoints, data, errors of the file system.
// Bounded. Single writer.
#pragma once

#include "detectors/model/observation.h"
#include "detectors/windows/speaker.h"

namespace rankscope::windows {

class StorageTracker {
 public:
  void OnEvent(const Event&, const Speaker&, Timestamp) {}
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}

  template <class A>
  void Fields(A&) {}
};

}  // namespace rankscope::windows
