// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/number.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// A number, and `behind` it, at the start of `text`; taken off.
bool TakeNumber(std::string_view& text, std::string_view behind) {
  text = LeftTrimmed(text);
  const Number number = ReadNumber(text);
  if (!number || !text.substr(number.text.size()).starts_with(behind)) return false;
  text.remove_prefix(number.text.size() + behind.size());
  return true;
}

}  // namespace

Number DarknetBatch(std::string_view text) {
  text = LeftTrimmed(text);
  const Number batch = ReadNumber(text);
  if (!IsIndex(batch)) return {};
  text.remove_prefix(batch.text.size());
  const bool share = text.starts_with(", ");
  if (!share && !text.starts_with(": ")) return {};
  text.remove_prefix(2);
  if (share && !TakeNumber(text, ": ")) return {};
  return TakeNumber(text, ", ") && TakeNumber(text, " avg") ? batch : Number{};
}

}  // namespace rankscope::logs
