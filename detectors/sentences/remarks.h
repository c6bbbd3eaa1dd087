// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a verdict says besides its cause: what the ranks' logs show together, what it rests on, and
// what was not observed. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/sentences/template.h"

namespace rankscope::sentences {

enum class Remark : uint8_t {
#define REMARK(remark, text) remark,
#include "detectors/sentences/remarks.inc"
#undef REMARK
};

std::string RemarkText(Remark remark, const FieldValues& values = {});

}  // namespace rankscope::sentences
