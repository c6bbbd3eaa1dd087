// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string LaunchText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kLaunches:
      return "kernels were launched";
    case EvidenceKind::kCudaCalls:
      return "time was spent in CUDA calls";
    case EvidenceKind::kAllocationFailed:
      return "an allocation on the GPU failed";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
