// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string CollectiveText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kCollectives:
      return "collectives were entered";
    case EvidenceKind::kCommunicator:
      return "a communicator was made";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
