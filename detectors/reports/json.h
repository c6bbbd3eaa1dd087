// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads JSON as NCCL and PyTorch write it, mistakes included: between two values a comma may be
// missing (NCCL 2.28.9) or stand twice, the text may end within a value, and all that was complete
// is still there. Wherever JSON cannot be made out, reading ends and the document says that it is
// cut. Memory and depth are bounded. Any thread.
#pragma once

#include <string_view>

#include "detectors/model/result.h"
#include "detectors/reports/pickle.h"

namespace rankscope::reports {

// `text` must outlive the document. An error only where not even an opening bracket is there, or
// where the text holds too many values.
Result<Document> ReadJson(std::string_view text);

}  // namespace rankscope::reports
