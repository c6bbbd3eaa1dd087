// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/wording_rooms.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceKind;

std::string StorageText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kFileError:
      return "a call on a file failed";
    case EvidenceKind::kFileSpace:
      return "a file system ran short of space";
    case EvidenceKind::kCheckpointFile:
      return "a checkpoint was written or read";
    case EvidenceKind::kDataRead:
      return "data was read";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
