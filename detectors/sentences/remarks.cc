// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/remarks.h"

#include <array>

#include "detectors/sentences/render.h"

namespace rankscope::sentences {
namespace {

constexpr std::array kRows = {
#define REMARK(remark, text) Template(text),
#include "detectors/sentences/remarks.inc"
#undef REMARK
};

}  // namespace

std::string RemarkText(Remark remark, const FieldValues& values) {
  return Render(kRows[static_cast<size_t>(remark)], values);
}

}  // namespace rankscope::sentences
