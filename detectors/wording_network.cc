// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string NetworkText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kConnection:
      return "a connection was tried";
    case EvidenceKind::kListener:
      return "a port was listened on";
    case EvidenceKind::kNameLookup:
      return "a name was looked up";
    case EvidenceKind::kTraffic:
      return "packets were lost or refused";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
