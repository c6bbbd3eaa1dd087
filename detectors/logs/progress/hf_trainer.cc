// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/dict.h"
#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/plain_record.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

struct Dict {
  Progress progress;
  double eval_loss = kAbsent;
  double runtime_s = kAbsent;
  double steps_per_second = kAbsent;
  bool has_eval = false;
  bool has_runtime = false;
  bool has_step = false;
  bool has_reward = false;
  bool loss_is_number = false;
  bool foreign = false;    // another dialect's
  bool companion = false;  // a key besides loss that only a training record has

  bool IsRecord() const { return loss_is_number && companion && !has_eval && !foreign; }
  // TRL's PPO prints its losses by part and no loss of the whole.
  bool IsReward() const { return progress.reward == progress.reward && companion && !has_eval; }
  // With include_num_input_tokens_seen, Trainer.log adds the time so far to each record.
  bool IsSummary() const { return has_runtime && !loss_is_number && !IsReward(); }
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

// "3h 7m 39s", "0:12:30", "1 day, 2:03:04": seconds; NaN where it is neither.
double ReadDuration(std::string_view text) {
  constexpr size_t kLongest = 40;
  if (text.size() > kLongest) return kAbsent;
  double seconds = 0;
  double clock = kAbsent;
  while (!(text = LeftTrimmed(text)).empty()) {
    const Number number = ReadNumber(text, Ending::kUnit);
    if (!number) return kAbsent;
    text.remove_prefix(number.text.size());
    if (text.starts_with(':')) {
      clock = (clock == clock ? clock : 0) * 60 + number.value;
      text.remove_prefix(1);
      continue;
    }
    if (clock == clock) return text.empty() ? seconds + clock * 60 + number.value : kAbsent;
    text = LeftTrimmed(text);
    const char unit = text.empty() ? 's' : text[0];
    const double factor = unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : 1;
    if (factor == 1 && unit != 's') return kAbsent;
    seconds += number.value * factor;
    while (!text.empty() && (IsLetter(text[0]) || text[0] == ',')) text.remove_prefix(1);
  }
  return seconds;
}

// Notes what the key says of its dict, and returns what its number is.
Key Note(std::string_view key, Dict& dict) {
  if (Is(key, "loss") || Is(key, "lm loss")) {
    dict.loss_is_number = true;
    return Key::kLoss;
  }
  if (Is(key, "grad_norm") || Is(key, "learning_rate") || Is(key, "lr") || Is(key, "epoch")) {
    dict.companion = true;
    return key[0] == 'g' ? Key::kGradNorm : key[0] == 'e' ? Key::kEpoch : Key::kLearningRate;
  }
  if (Is(key, "step") || Is(key, "global_step") || Is(key, "current_steps") ||
      Is(key, "iteration")) {
    dict.companion = dict.has_step = true;
    return Key::kStep;
  }
  if (Is(key, "iter")) {  // mmcv's JSON, which may give the global step, too
    const bool first = !dict.has_step;
    dict.companion = dict.has_step = true;
    return first ? Key::kStep : Key::kOther;
  }
  if (key.starts_with("eval")) {
    dict.has_eval = true;
    return Key::kOther;
  }
  if (Is(key, "total_steps") || Is(key, "max_steps")) return Key::kTotalSteps;
  if (Is(key, "episode")) return Key::kConsumedSamples;     // TRL's PPO counts samples
  if (Is(key, "throughput")) return Key::kTokensPerSecond;  // LLaMA-Factory counts tokens
  if (Is(key, "time") || Is(key, "train_speed(s/it)") || Is(key, "elapsed_time_per_iteration"))
    return Key::kStepTime;
  if (Is(key, "train_speed(iter/s)")) return Key::kStepRate;
  if (Is(key, "rewards/margins"))  // preference training has no other reward
    return dict.has_reward ? Key::kOther : Key::kReward;
  if (Is(key, "num_updates")) dict.foreign = true;  // fairseq's
  if (Is(key, "train_runtime")) dict.has_runtime = true;
  const Key meaning = MeaningOf(key).key;
  dict.has_reward = dict.has_reward || meaning == Key::kReward;
  const bool own = meaning == Key::kStep || meaning == Key::kLoss || meaning == Key::kGradNorm ||
                   meaning == Key::kLearningRate || meaning == Key::kEpoch;
  return own ? Key::kOther : meaning;
}

void TakeItem(const DictItem& item, Dict& dict) {
  Progress& p = dict.progress;
  const std::string_view key = item.key;
  const Number value = DictNumber(item);
  if (!value && (Is(key, "loss") || Is(key, "lm loss"))) return;  // 'cross_entropy'
  if (Is(key, "mode")) dict.has_eval = dict.has_eval || item.value != "train";
  if (value && Is(key, "eval_loss")) dict.eval_loss = value.value;
  if (value && Is(key, "train_runtime")) dict.runtime_s = value.value;
  if (value && Is(key, "train_steps_per_second")) dict.steps_per_second = value.value;
  if (!value && Is(key, "elapsed_time")) p.elapsed_seconds = ReadDuration(item.value);
  if (Is(key, "global_step/max_steps") || (!value && Is(key, "iteration"))) {  // ms-swift
    TakePosition(item.value, p);
    dict.companion = true;
    return;
  }
  const Key meaning = Note(key, dict);
  if (!value && Is(key, "iter")) {  // SlowFast: '10/3712', of the epoch
    const Number step = WholeNumber(item.value.substr(0, item.value.find('/')));
    if (IsIndex(step)) SetStep(p, step);
  }
  if (!value) return;
  switch (meaning) {
    case Key::kStep:
      return SetStep(p, value);
    case Key::kLoss:
      return SetLoss(p, value);
    case Key::kGradNorm:
      return SetGradNorm(p, value);
    case Key::kLearningRate:
      return SetLearningRate(p, value);
    default:
      return SetFact(p, meaning, value.value);
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

bool ReadPlainDict(std::string_view text, PlainItems& out) {
  if (!text.starts_with("{'") && !text.starts_with("{\"")) return false;
  Dict dict;
  DictCursor cursor(text.substr(1));
  DictItem item;
  while (cursor.Next(item)) {
    // A metric's name, in which no anchor of another row can stand.
    for (const char c : item.key) {
      if (!IsWordByte(c) && std::string_view("/() ").find(c) == std::string_view::npos)
        return false;
    }
    if (!item.number || !out.Add(item.number, Note(item.key, dict))) return false;
  }
  out.format = "hf_trainer";
  return cursor.closed() && cursor.rest().size() == 1 && dict.IsRecord();
}

namespace {

// Reads the line's first dict; false where it has none.
bool ReadDict(const CleanLine& line, Dict& dict, size_t& brace) {
  constexpr size_t kMaxBefore = 4096;  // bars with a terminal's width of padding, several glued
  const std::string_view text = line.text;
  brace = text.starts_with("{'") ? 0 : text.substr(0, kMaxBefore).find("{'");
  if (brace == std::string_view::npos) brace = text.substr(0, kMaxBefore).find("{\"");
  if (brace == std::string_view::npos) return false;
  DictCursor cursor(text.substr(brace + 1));
  DictItem item;
  while (cursor.Next(item)) TakeItem(item, dict);
  return cursor.closed();
}

}  // namespace

bool ParseHfTrainer(const CleanLine& line, RecordList& out) {
  Dict dict;
  size_t brace = 0;
  if (!ReadDict(line, dict, brace)) return false;
  if (dict.IsSummary()) {
    // The number of steps is not printed, but its factors are (to three decimals: good for small
    // counts).
    const double steps = std::round(dict.runtime_s * dict.steps_per_second);
    out.push_back(MakeMarker(MarkerKind::kTrainEnd, "hf_trainer", line, {}, steps));
    return true;
  }
  if (dict.IsRecord() && SpeaksOfTraining(line.text.substr(0, brace), dict.progress)) {
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

bool ParseTrlPpo(const CleanLine& line, RecordList& out) {
  Dict dict;
  size_t brace = 0;
  if (!ReadDict(line, dict, brace) || dict.loss_is_number || !dict.IsReward()) return false;
  dict.progress.format = "trl_ppo";
  out.emplace_back(dict.progress);
  return true;
}

}  // namespace rankscope::logs
