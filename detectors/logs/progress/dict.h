// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One Python or JSON dict of metrics, item by item, without allocation. For the dialects that print
// dicts; in the header because their lines come by the million. Stateless; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {

struct DictItem {
  std::string_view key;
  std::string_view value;  // unquoted
  Number number;           // where the value is a plain number
};

// Walks the items of one Python or JSON dict: {'key': value, "key": 'value', 'key': [..], ...}.
class DictCursor {
 public:
  explicit DictCursor(std::string_view text) : rest_(text) {}  // text begins behind '{'

  // False at the closing brace and where the text is no dict.
  bool Next(DictItem& item) {
    SkipBlanks();
    if (rest_.empty()) return false;
    const char quote = rest_[0];
    if (quote == '}') {
      closed_ = true;
      return false;
    }
    if (quote != '\'' && quote != '"') return false;
    size_t key_end = 1;  // keys are short: a loop beats a call
    while (key_end < rest_.size() && rest_[key_end] != quote) ++key_end;
    if (key_end == rest_.size()) return false;
    item.key = rest_.substr(1, key_end - 1);
    rest_.remove_prefix(key_end + 1);
    SkipBlanks();
    if (rest_.empty() || rest_[0] != ':') return false;
    rest_.remove_prefix(1);
    SkipBlanks();
    if (rest_.empty()) return false;
    size_t end = 0;
    item.number = ReadDecimal(rest_);
    const size_t size = item.number.text.size();
    if (size != 0 && size < rest_.size() && (rest_[size] == ',' || rest_[size] == '}')) {
      item.value = item.number.text;
      rest_.remove_prefix(rest_[size] == ',' ? size + 1 : size);
      return true;
    }
    item.number = {};
    if (rest_[0] == '\'' || rest_[0] == '"') {
      // Transformers 5 rounds its numbers and prints them quoted.
      const Number quoted = ReadDecimal(rest_.substr(1));
      const size_t after = 1 + quoted.text.size();
      if (after > 1 && after + 1 < rest_.size() && rest_[after] == rest_[0] &&
          (rest_[after + 1] == ',' || rest_[after + 1] == '}')) {
        item.number = quoted;
        item.value = quoted.text;
        rest_.remove_prefix(rest_[after + 1] == ',' ? after + 2 : after + 1);
        return true;
      }
      end = rest_.find(rest_[0], 1);
      if (end == std::string_view::npos) return false;
      item.value = rest_.substr(1, end - 1);
      ++end;
    } else if (IsDigit(rest_[0]) || rest_[0] == '-') {
      while (end < rest_.size() && rest_[end] != ',' && rest_[end] != '}') ++end;
      item.value = Trimmed(rest_.substr(0, end));
    } else {
      int depth = 0;  // [..], (..), {..} as values
      while (end < rest_.size()) {
        const char c = rest_[end];
        if (depth == 0 && (c == ',' || c == '}')) break;
        if (c == '[' || c == '(' || c == '{') ++depth;
        if (c == ']' || c == ')' || c == '}') --depth;
        ++end;
      }
      item.value = Trimmed(rest_.substr(0, end));
    }
    rest_.remove_prefix(end);
    SkipBlanks();
    if (rest_.empty()) return false;  // cut off: the item may be cut, too
    if (rest_[0] == ',') rest_.remove_prefix(1);
    return true;
  }

  bool closed() const { return closed_; }
  std::string_view rest() const { return rest_; }  // from the closing brace on

 private:
  void SkipBlanks() {
    while (!rest_.empty() && IsBlank(rest_[0])) rest_.remove_prefix(1);
  }

  std::string_view rest_;
  bool closed_ = false;
};

// The item's number, also where it is quoted or NumPy's: "np.float64(0.5)".
inline Number DictNumber(const DictItem& item) {
  if (item.number) return item.number;
  std::string_view value = item.value;
  if (value.starts_with("np.") && value.ends_with(')')) {
    const size_t open = value.find('(');
    value =
        open == std::string_view::npos ? value : value.substr(open + 1, value.size() - open - 2);
  }
  return WholeNumber(value);
}

}  // namespace rankscope::logs
