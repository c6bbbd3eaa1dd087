// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string ReportText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kRas:
      return "NCCL reports";
    case EvidenceKind::kFlightRecorder:
      return "the flight recorder shows";
    case EvidenceKind::kInspector:
      return "the inspector shows";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
