// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "detectors/logs/dialects.h"
#include "detectors/logs/pairs.h"
#include "detectors/logs/prefix.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

struct Item {
  std::string_view key;
  std::string_view value;  // unquoted
  Number number;           // where the value is a bare number
};

// Walks the items of one Python or JSON dict: {'key': value, "key": 'value', 'key': [..], ...}.
class DictCursor {
 public:
  explicit DictCursor(std::string_view text) : rest_(text) {}  // text begins behind '{'

  // False at the closing brace and where the text is no dict.
  bool Next(Item& item) {
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

struct Dict {
  Progress progress;
  double eval_loss = kAbsent;
  double runtime_s = kAbsent;
  double steps_per_second = kAbsent;
  bool has_eval = false;
  bool has_runtime = false;
  bool loss_is_number = false;
  bool companion = false;  // a key besides loss that only a training record has

  bool IsRecord() const { return loss_is_number && companion && !has_eval && !has_runtime; }
};

void TakePosition(std::string_view value, Progress& progress) {  // '350/1881'
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return;
  const Number step = WholeNumber(value.substr(0, slash));
  const Number total = WholeNumber(value.substr(slash + 1));
  if (!IsIndex(step) || !IsIndex(total)) return;
  SetStep(progress, step);
  progress.total_steps = total.value;
}

// Compares with a literal of known length, without a call.
template <size_t kSize>
bool Is(std::string_view key, const char (&literal)[kSize]) {
  return key.size() == kSize - 1 && std::memcmp(key.data(), literal, kSize - 1) == 0;
}

// Returns whether the key is one of ours.
bool TakeItem(const Item& item, Dict& dict) {
  Progress& p = dict.progress;
  const std::string_view key = item.key;
  if (key.empty()) return false;
  const auto value = [&item] { return item.number ? item.number : WholeNumber(item.value); };
  // Most keys of a long reinforcement-learning dict are none of ours: one look each.
  switch (key[0]) {
    case 'l':
      if (Is(key, "loss")) {
        if (const Number n = value()) {
          SetLoss(p, n);
          dict.loss_is_number = true;
        }
      } else if (Is(key, "learning_rate") || Is(key, "lr")) {
        if (const Number n = value()) SetLearningRate(p, n);
        dict.companion = true;
      } else if (Is(key, "loss_scale")) {
        if (const Number n = value()) p.loss_scale = n.value;
      } else {
        return false;
      }
      return true;
    case 'g':
      if (Is(key, "grad_norm")) {
        if (const Number n = value()) SetGradNorm(p, n);
        dict.companion = true;
      } else if (Is(key, "global_step/max_steps")) {
        TakePosition(item.value, p);
        dict.companion = true;
      } else if (Is(key, "global_step")) {
        if (const Number n = value()) SetStep(p, n);
        dict.companion = true;
      } else {
        return false;
      }
      return true;
    case 'e':
      if (Is(key, "epoch")) {
        if (const Number n = value()) p.epoch = n.value;
        dict.companion = true;
      } else if (key.starts_with("eval_")) {
        dict.has_eval = true;
        if (const Number n = value(); n && Is(key, "eval_loss")) dict.eval_loss = n.value;
      } else {
        return false;
      }
      return true;
    case 's':
      if (Is(key, "step")) {
        if (const Number n = value()) SetStep(p, n);
        dict.companion = true;
      } else {
        return false;
      }
      return true;
    case 'c':
      if (Is(key, "current_steps")) {
        if (const Number n = value()) SetStep(p, n);
        dict.companion = true;
      } else {
        return false;
      }
      return true;
    case 'r':
      if (Is(key, "reward")) {
        if (const Number n = value()) p.reward = n.value;
      } else {
        return false;
      }
      return true;
    case 't':
      if (Is(key, "train_runtime")) {
        dict.has_runtime = true;
        if (const Number n = value()) dict.runtime_s = n.value;
      } else if (Is(key, "train_steps_per_second")) {
        if (const Number n = value()) dict.steps_per_second = n.value;
      } else if (Is(key, "total_steps")) {
        if (const Number n = value()) p.total_steps = n.value;
      } else if (Is(key, "train_speed(s/it)")) {
        if (const Number n = value()) p.step_seconds = n.value;
      } else {
        return false;
      }
      return true;
    default:
      return false;
  }
}

// Before the dict a bar, a logger's prefix or nothing may stand; words of evaluation mean another
// dict.
bool SpeaksOfTraining(std::string_view before, Progress& progress) {
  before = Trimmed(before);
  if (before.empty()) return true;
  const BehindBar bar = StripBar(before);
  if (bar.total == bar.total) progress.total_steps = bar.total;
  before = Trimmed(bar.text);
  if (before.empty()) return true;
  const PairList pairs(StripLoggerPrefix(before));
  return !pairs.speaks_of_evaluation() && pairs.stray_words() <= 3;
}

}  // namespace

bool ParsePlainDict(std::string_view text, Progress& out) {
  if (!text.starts_with("{'") && !text.starts_with("{\"")) return false;
  Dict dict;
  DictCursor cursor(text.substr(1));
  Item item;
  while (cursor.Next(item)) {
    if (!item.number || !TakeItem(item, dict)) return false;
  }
  if (!cursor.closed() || cursor.rest().size() != 1 || !dict.IsRecord()) return false;
  dict.progress.format = "hf_trainer";
  out = dict.progress;
  return true;
}

bool ParseHfTrainer(const CleanLine& line, RecordList& out) {
  constexpr size_t kMaxBefore = 4096;  // bars with a terminal's width of padding, several glued
  const std::string_view text = line.text;
  size_t brace = text.starts_with("{'") ? 0 : text.substr(0, kMaxBefore).find("{'");
  if (brace == std::string_view::npos) brace = text.substr(0, kMaxBefore).find("{\"");
  if (brace == std::string_view::npos) return false;
  Dict dict;
  DictCursor cursor(text.substr(brace + 1));
  Item item;
  while (cursor.Next(item)) TakeItem(item, dict);
  if (!cursor.closed()) return false;
  if (dict.has_runtime) {
    // The number of steps is not printed, but its factors are (to three decimals: good for small
    // counts).
    const double steps = std::round(dict.runtime_s * dict.steps_per_second);
    out.push_back(MakeMarker(MarkerKind::kTrainEnd, "hf_trainer", line, {}, steps));
    return true;
  }
  if (dict.IsRecord() && SpeaksOfTraining(text.substr(0, brace), dict.progress)) {
    dict.progress.format = "hf_trainer";
    out.emplace_back(dict.progress);
    return true;
  }
  if (dict.has_eval && dict.companion) {
    out.push_back(MakeMarker(MarkerKind::kEval, "hf_trainer", line, {}, dict.eval_loss));
    return true;
  }
  return false;
}

}  // namespace rankscope::logs
