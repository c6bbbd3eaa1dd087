// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the line formats of the PyTorch examples and their heirs (timm, mmcv) have in common: an
// epoch, an index within it, then meters. For those dialects. Stateless; any thread.
#pragma once

#include <string_view>

#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

// The loss of a line that trains one model; false where it prints none or speaks of something else.
bool TakeLoss(const PairList& pairs, Progress& progress);

// "Epoch: [0][ 10/500] ...", "Train Epoch: 1 [640/60000 (1%)] ...": an epoch, then a bare index in
// the epoch.
bool ReadMeter(const PairList& pairs, std::string_view format, RecordList& out);

}  // namespace rankscope::logs
