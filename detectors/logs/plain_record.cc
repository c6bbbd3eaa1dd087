// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/dialects.h"

namespace rankscope::logs {

bool ParsePlainRecord(std::string_view text, Progress& out) {
  if (text.empty()) return false;
  switch (text[0]) {
    case '{':
      return ParsePlainDict(text, out);
    case ' ':
    case '[':
      return ParsePlainMegatron(text, out);
    default:
      return text[0] >= 'a' && text[0] <= 'z' && ParsePlainLoop(text, out);
  }
}

}  // namespace rankscope::logs
