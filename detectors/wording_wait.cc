// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string WaitText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kThreads:
      return "threads wait";
    case EvidenceKind::kThreadStack:
      return "a thread stands still";
    case EvidenceKind::kStopped:
      return "a process was stopped";
    case EvidenceKind::kStarved:
      return "a process had no CPU";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
