// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kBarLosses[] = {
    "reduced_train_loss", "train_loss_step", "loss_step",  "loss",      "train_loss",
    "training_loss",      "train_step_loss", "step_loss",  "avr_loss",  "avg_loss",
    "train_total_loss",   "gpt_loss",        "lm_loss",    "ce_loss",   "loss_mean",
    "loss_train_total",   "loss_total",      "total_loss", "batch_loss"};

// Start of the bar's bracket, "[elapsed<eta, rate, name=value, ...]"; i and n stand before it.
struct BarHead {
  size_t bracket = std::string_view::npos;
  Number position;
  Number total;
};

BarHead FindHead(std::string_view text) {
  BarHead head;
  size_t bracket = text.rfind(" [");
  while (bracket != std::string_view::npos && bracket > 2) {
    size_t begin = bracket;
    while (begin > 0 && (IsDigit(text[begin - 1]) || text[begin - 1] == '/')) --begin;
    const std::string_view index = text.substr(begin, bracket - begin);
    const size_t slash = index.find('/');
    if (slash != std::string_view::npos &&
        text.substr(bracket).find('<') != std::string_view::npos) {
      head.position = WholeNumber(index.substr(0, slash));
      head.total = WholeNumber(index.substr(slash + 1));
      if (IsIndex(head.position) && IsIndex(head.total)) {
        head.bracket = bracket + 2;
        return head;
      }
    }
    bracket = bracket == 0 ? std::string_view::npos : text.rfind(" [", bracket - 1);
  }
  return head;
}

const Pair* FindLoss(const PairList& pairs) {
  for (const std::string_view name : kBarLosses) {
    if (const Pair* pair = pairs.FindNamed(name)) return pair;
  }
  return nullptr;
}

// What else runs a model over data and shows its loss, by the begin of a word.
bool IsOtherActivity(std::string_view word) {
  static constexpr std::string_view kStems[] = {"quanti",  "calibrat", "prun",    "generat",
                                                "predict", "decod",    "encod",   "embed",
                                                "search",  "evaluat",  "validat", "reconstruct"};
  return std::any_of(std::begin(kStems), std::end(kStems), [word](std::string_view stem) {
    return word.size() >= stem.size() && KeyIs(word.substr(0, stem.size()), stem);
  });
}

// Whether a bar's description speaks of validation, or of looking for the "best initial lr".
bool NamesEvaluation(std::string_view description) {
  while (!description.empty()) {
    size_t end = 0;
    while (end < description.size() && IsWordByte(description[end])) ++end;
    const std::string_view word = description.substr(0, end);
    if (MeaningOf(word).key == Key::kEvaluation || IsOtherActivity(word)) return true;
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  return false;
}

// What stands before a bar's share: "Epoch 3 Loss 2.1:  5". AllenNLP's ("||:") is the same for what
// it validates.
std::string_view Description(std::string_view before) {
  if (before.find("||:") != std::string_view::npos) return {};
  while (!before.empty() && (IsDigit(before.back()) || IsBlank(before.back())))
    before.remove_suffix(1);
  return before.ends_with(':') ? before.substr(0, before.size() - 1) : std::string_view();
}

// Up to the bracket's end, or everything where the bar is cut. What another printer wrote behind a
// bar ("...1.00it/s]{'loss': 2.1}", the Trainer's dict) is not the bar's.
std::string_view InBracket(std::string_view text) {
  size_t depth = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(0, i);
  }
  return text;
}

// Each refresh of a bar that shows a training loss is a record.
bool ReadBar(const CleanLine& line, bool lightning, RecordList& out) {
  const std::string_view text = line.text;
  const size_t percent = text.find("%|");
  const size_t plain = percent == std::string_view::npos ? text.find("% ") : percent;
  if (plain == std::string_view::npos) return false;
  const BarHead head = FindHead(text);
  if (head.bracket == std::string_view::npos || head.bracket < plain) return false;
  const std::string_view before = LeftTrimmed(text.substr(0, plain));
  const size_t named = before.find("Epoch ");
  const bool epoch_bar =
      named == 0 || (named != std::string_view::npos && before[named - 1] == ' ');
  const std::string_view postfix = InBracket(text.substr(head.bracket));
  // The version number tells Lightning's bar from anybody else's.
  if (lightning != (epoch_bar && postfix.find("v_num=") != std::string_view::npos)) return false;
  if (NamesEvaluation(before)) return false;
  const PairList pairs(postfix);
  const PairList described(percent != std::string_view::npos ? Description(before)
                                                             : std::string_view());
  const Pair* loss = FindLoss(pairs);
  const bool in_postfix = loss != nullptr;
  if (!in_postfix) loss = FindLoss(described);
  if (loss == nullptr || pairs.Find(Key::kForeignLoss) || described.Find(Key::kForeignLoss))
    return false;
  Progress progress;
  if (!in_postfix) FillFromPairs(described, progress);
  progress.format = !lightning                              ? "tqdm_loop"
                    : pairs.FindNamed("reduced_train_loss") ? "nemo"
                                                            : "lightning";
  FillFromPairs(pairs, progress);
  SetStep(progress, head.position);
  SetLoss(progress, loss->value);
  if (const Pair* step = pairs.FindNamed("global_step")) SetStep(progress, step->value);
  if (const Pair* step = pairs.FindNamed("num_updates")) SetStep(progress, step->value);  // fairseq
  if (epoch_bar) {
    if (const Number epoch = ReadNumber(LeftTrimmed(before.substr(named + 6)), Ending::kUnit))
      progress.epoch = epoch.value;
  } else {
    progress.total_steps = head.total.value;
  }
  for (const Pair& pair : pairs) {
    if (pair.unit == "s/it") progress.step_seconds = pair.value.value;
    if (pair.unit == "it/s" && pair.value.value > 0) progress.step_seconds = 1 / pair.value.value;
  }
  out.emplace_back(progress);
  return true;
}

}  // namespace

// "Progress on:train 90it/10.0kit rate:3.2s/it remaining:8:45:10 elapsed:04:48 postfix:loss=9.06":
// tqdm-loggable, which writes a bar as lines of a log (Levanter). From a thousand on the position
// is rounded, and no step.
bool ParseTqdmLoggable(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kBegin = "Progress on:";
  constexpr std::string_view kPostfix = " postfix:";
  const size_t begin = line.text.find(kBegin);
  if (begin == std::string_view::npos) return false;
  const std::string_view text = line.text.substr(begin + kBegin.size());
  const size_t rate = text.find(" rate:");
  const size_t postfix = text.find(kPostfix);
  if (rate == std::string_view::npos || postfix == std::string_view::npos) return false;
  const std::string_view head = text.substr(0, rate);
  const size_t blank = head.rfind(' ');
  if (blank == std::string_view::npos || NamesEvaluation(head.substr(0, blank))) return false;
  const PairList pairs(text.substr(postfix + kPostfix.size()));
  const Pair* loss = FindLoss(pairs);
  if (loss == nullptr) return false;
  Progress progress;
  progress.format = "tqdm_loggable";
  FillFromPairs(pairs, progress);
  SetLoss(progress, loss->value);
  const Number step = ReadNumber(head.substr(blank + 1), Ending::kUnit);
  if (IsIndex(step) && head.substr(blank + 1 + step.text.size()).starts_with("it"))
    SetStep(progress, step);
  out.emplace_back(progress);
  return true;
}

// "Epoch 0:  22%|##   | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=193315]"
bool ParseLightning(const CleanLine& line, RecordList& out) {
  return ReadBar(line, true, out);
}

// "Epoch 0/9 ━━━ 18/18 0:00:05 • 0:00:00 3.42it/s v_num: 0 train_loss: 2.312": RichProgressBar;
// until 1.5 with "•" between all of them.
bool ParseLightningRich(const CleanLine& line, RecordList& out) {
  const std::string_view text = LeftTrimmed(line.text);
  if (!text.starts_with("Epoch ")) return false;
  const size_t rate = text.find("it/s");
  const size_t bar = text.find("\xe2\x94\x81");
  if (rate == std::string_view::npos || bar == std::string_view::npos || bar > rate) return false;
  const Number epoch = ReadNumber(text.substr(6));
  size_t slash = text.find('/', bar);
  if (!IsIndex(epoch) || slash == std::string_view::npos || slash > rate) return false;
  size_t begin = slash;
  while (begin > 0 && IsDigit(text[begin - 1])) --begin;
  const Number position = ReadNumber(text.substr(begin));
  const PairList pairs(text.substr(rate + 4));
  const Pair* loss = FindLoss(pairs);
  if (begin == slash || !IsIndex(position) || loss == nullptr || pairs.Find(Key::kForeignLoss))
    return false;
  Progress progress;
  progress.format = "lightning_rich";
  FillFromPairs(pairs, progress);
  SetStep(progress, position);
  SetLoss(progress, loss->value);
  progress.epoch = epoch.value;
  size_t number = rate;
  while (number > 0 && (IsDigit(text[number - 1]) || text[number - 1] == '.')) --number;
  const Number per_second = ReadNumber(text.substr(number), Ending::kUnit);
  if (per_second && per_second.value > 0) progress.step_seconds = 1 / per_second.value;
  out.emplace_back(progress);
  return true;
}

// Bars that hand-written loops draw with tqdm.
bool ParseTqdmLoop(const CleanLine& line, RecordList& out) {
  return ReadBar(line, false, out);
}

}  // namespace rankscope::logs
