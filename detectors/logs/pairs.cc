// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/pairs.h"

#include <algorithm>
#include <array>
#include <new>

namespace rankscope::logs {
namespace {

// Keys are compared folded: a table beats branches on every byte of every line.
constexpr std::array<char, 256> MakeFold() {
  std::array<char, 256> fold{};
  for (int i = 0; i < 256; ++i) {
    const auto c = static_cast<char>(i);
    fold[static_cast<size_t>(i)] = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20)
                                   : c == ' ' || c == '-' || c == '/' || c == '.' ? '_'
                                                                                  : c;
  }
  return fold;
}
constexpr std::array<char, 256> kFold = MakeFold();
constexpr char Fold(char c) {
  return kFold[static_cast<uint8_t>(c)];
}

// What a byte may be between, before or inside keys and values.
enum : uint8_t {
  kKeyByte = 1,
  kJoin = 2,
  kKeyBegin = 4,
  kNumberBegin = 8,
  kSign = 16,
  kPlainWord = 32
};

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  const auto add = [&classes](std::string_view bytes, uint8_t what) {
    for (const char c : bytes) classes[static_cast<uint8_t>(c)] |= what;
  };
  for (int i = 0; i < 256; ++i) {
    const auto c = static_cast<char>(i);
    if (IsWordByte(c)) classes[static_cast<size_t>(i)] |= kKeyByte;
    if (IsLetter(c) || c == '_') classes[static_cast<size_t>(i)] |= kKeyBegin;
    if (IsDigit(c)) classes[static_cast<size_t>(i)] |= kNumberBegin;
  }
  add("/.-@", kKeyByte);
  add("abcdefghijklmnopqrstuvwxyz_", kPlainWord);
  add(" \t:=[(#'\"", kJoin);
  add(".nNiI", kNumberBegin);  // nan, inf
  add("+-", kSign);
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();
constexpr bool Is(char c, uint8_t what) {
  return (kClasses[static_cast<uint8_t>(c)] & what) != 0;
}

// Whether the 'n' or 'i' at the start of `text` may begin "nan" or "inf".
constexpr bool MayBeNonFinite(std::string_view text) {
  if (text.size() < 3) return false;
  const auto second = static_cast<char>(text[1] | 0x20);
  return (text[0] | 0x20) == 'n' ? second == 'a' : second == 'n';
}

// Keys by meaning, the most telling first.
struct Group {
  Key key;
  std::string_view names;  // by blanks
};

constexpr Group kGroups[] = {
    {Key::kStep,
     "global_step step steps iteration iter it iters train_step train_iter training_step "
     "global_steps update updates num_updates batch minibatch mini_batch batch_idx "
     "batches train_batch"},
    {Key::kEpoch, "epoch ep epochs train_epoch training_epoch"},
    {Key::kLoss,
     "loss train_loss training_loss lm_loss total_loss batch_loss loss_train "
     "train_total_loss step_loss avg_loss mean_loss average_loss running_loss "
     "avg_train_loss train_avg_loss"},
    {Key::kForeignLoss,
     "d_loss g_loss loss_d loss_g discriminator_loss generator_loss adversarial_loss "
     "style_loss content_loss gan_loss errd errg dloss gloss critic_loss actor_loss "
     "policy_loss act_loss cri_loss loss_d_real disc_loss gen_loss"},
    {Key::kGradNorm,
     "grad_norm gradnorm gnorm gradient_norm train_grad_norm global_grad_norm total_norm "
     "norm grad"},
    {Key::kLearningRate, "lr learning_rate train_lr learning_rates base_lr lrate"},
    {Key::kStepTime,
     "step_time iter_time time_per_step time_per_iter time_step batch_time dt sec_step "
     "s_it"},
    {Key::kStepMilliseconds, "ms_batch ms_step step_time_ms ms_iter"},
    {Key::kTime, "time"},
    {Key::kLossScale, "loss_scale scale grad_scale"},
    {Key::kReward, "reward mean_reward train_reward"},
    {Key::kEvaluation,
     "eval evaluation evaluating evaluate validation validate validating valid val test "
     "testing dev inference finder lr_find lr_finder prediction best"},
};

constexpr size_t kMaxKey = 24;  // bytes of the longest name above

// Of three bytes and the length: telling enough for a hundred names, and no loop over the word.
constexpr uint32_t HashOf(std::string_view words) {
  const auto at = [words](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(Fold(words[i])));
  };
  const uint32_t hash = (at(0) | at(words.size() / 2) << 8 | at(words.size() - 1) << 16 |
                         static_cast<uint32_t>(words.size()) << 24) *
                        2654435769u;
  return hash >> 16;
}

struct Slot {
  std::string_view name;
  Meaning meaning;
};
constexpr size_t kSlots = 512;  // four times the names: probes are short

constexpr std::array<Slot, kSlots> MakeSlots() {
  std::array<Slot, kSlots> slots{};
  for (const Group& group : kGroups) {
    uint8_t rank = 0;
    for (size_t begin = 0; begin < group.names.size();) {
      const size_t end = std::min(group.names.find(' ', begin), group.names.size());
      const std::string_view name = group.names.substr(begin, end - begin);
      size_t i = HashOf(name) % kSlots;
      while (!slots[i].name.empty()) i = (i + 1) % kSlots;
      slots[i].name = name;
      slots[i].meaning.key = group.key;
      slots[i].meaning.rank = rank++;
      begin = end + 1;
    }
  }
  return slots;
}

constexpr std::array<Slot, kSlots> kTable = MakeSlots();

// Between a word and its number: "Step [  100", "loss  =  (". More means that the number is not the
// word's.
constexpr size_t kMaxMarks = 4;
constexpr size_t kMaxBlanks = 16;

}  // namespace

bool KeyIs(std::string_view words, std::string_view name) {
  if (words.size() != name.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (Fold(words[i]) != name[i]) return false;
  }
  return true;
}

Meaning MeaningOf(std::string_view words) {
  if (words.empty() || words.size() > kMaxKey) return {};
  for (size_t i = HashOf(words) % kSlots; !kTable[i].name.empty(); i = (i + 1) % kSlots) {
    if (KeyIs(words, kTable[i].name)) return kTable[i].meaning;
  }
  return {};
}

void PairList::Stray(std::string_view words) {
  while (!words.empty()) {
    const size_t end = words.find(' ');
    const std::string_view word = words.substr(0, end);
    if (!word.empty()) {
      ++stray_words_;
      if (MeaningOf(word).key == Key::kEvaluation) evaluation_ = true;
    }
    if (end == std::string_view::npos) break;
    words.remove_prefix(end + 1);
  }
}

// The pair at `at` has this meaning; the most telling of each is found again at once.
inline void PairList::Note(const Meaning& meaning, size_t at) {
  uint8_t& best = best_[static_cast<size_t>(meaning.key)];
  if (best == kNone || meaning.rank < pairs_[best].meaning.rank) best = static_cast<uint8_t>(at);
}

inline void PairList::Add(const Pair& pair) {
  if (size_ == kMaxPairs) return;
  Note(pair.meaning, size_);
  ::new (static_cast<void*>(&pairs_[size_++])) Pair(pair);
}

// "worker finished step 30": the index belongs to the last word alone, and the others are prose. A
// loss is different: "style loss" is another loss.
void PairList::TakeLastWord(Pair& pair) {
  const size_t blank = pair.key.rfind(' ');
  if (blank == std::string_view::npos) return;
  for (const std::string_view joint : {"with ", "and ", "has "}) {  // "step 30 with loss 1.25"
    if (!pair.key.starts_with(joint)) continue;
    const Meaning rest = MeaningOf(pair.key.substr(joint.size()));
    if (rest.key == Key::kOther) continue;
    pair.key.remove_prefix(joint.size());
    pair.at += joint.size();
    pair.meaning = rest;
    return;
  }
  const std::string_view last = pair.key.substr(blank + 1);
  const Meaning meaning = MeaningOf(last);
  const bool plural =
      last.back() == 's' || last.back() == 'S';  // "warmup steps": a count, not an index
  if ((meaning.key != Key::kStep && meaning.key != Key::kEpoch) || plural) return;
  Stray(pair.key.substr(0, blank));
  pair.key = last;
  pair.at += blank + 1;
  pair.meaning = meaning;
}

PairList::PairList(std::string_view text) {
  size_t i = 0;
  size_t key_begin = 0;
  size_t key_end = 0;  // key_begin == key_end: no open key
  size_t marks = 0;    // since the key ended
  size_t blanks = 0;
  const auto drop_key = [&] {
    if (key_end != key_begin) Stray(text.substr(key_begin, key_end - key_begin));
    key_begin = key_end = 0;
    marks = blanks = 0;
  };
  while (i < text.size()) {
    const char c = text[i];
    const bool sign =
        Is(c, kSign) && i + 1 < text.size() &&
        (IsDigit(text[i + 1]) || text[i + 1] == 'i' || text[i + 1] == 'n' || text[i + 1] == '.');
    Number number;
    if (sign || (Is(c, kNumberBegin) && (!Is(c, kKeyBegin) || MayBeNonFinite(text.substr(i))))) {
      number = ReadNumber(text.substr(i), Ending::kUnit, Thousands::kYes);
    }
    if (number) {
      Pair pair;
      if (key_end != key_begin) {
        pair.key = text.substr(key_begin, key_end - key_begin);
        pair.meaning = MeaningOf(pair.key);
        pair.at = key_begin;
        if (pair.meaning.key == Key::kOther) TakeLastWord(pair);
      } else {
        pair.at = i;
      }
      pair.value = number;
      key_begin = key_end = 0;
      marks = blanks = 0;
      i += number.text.size();
      size_t j = i;
      while (j < text.size() && IsBlank(text[j])) ++j;
      if (j < text.size() &&
          (text[j] == '/' || (text[j] == 'o' && text.substr(j).starts_with("of ")))) {
        j += text[j] == '/' ? 1 : 3;
        while (j < text.size() && IsBlank(text[j])) ++j;
        const Number total = ReadNumber(text.substr(j), Ending::kDelimiter, Thousands::kYes);
        if (total) {
          pair.total = total;
          i = j + total.text.size();
        }
      }
      // "53.1ms" and "53.1 ms"; "200/2983 batches".
      j = i;
      if (j < text.size() && text[j] == ' ') ++j;
      size_t unit = j;
      while (unit < text.size() && (IsLetter(text[unit]) || text[unit] == '/')) ++unit;
      pair.unit = text.substr(j, unit - j);
      if (j == i) i = unit;  // a glued unit is no key of what follows
      Add(pair);
      continue;
    }
    if (Is(c, kKeyBegin)) {
      size_t end = i + 1;
      while (end < text.size() && Is(text[end], kKeyByte)) ++end;
      // "loss." at the end of a sentence, "key-" before a value
      while (end > i + 1 && (text[end - 1] == '.' || text[end - 1] == '-')) --end;
      if (key_end != key_begin && marks == 0 && blanks == 1) {
        key_end = end;  // another word of the same key
      } else {
        drop_key();
        key_begin = i;
        key_end = end;
      }
      marks = blanks = 0;
      i = end;
      continue;
    }
    if (key_end != key_begin) {
      ++(IsBlank(c) ? blanks : marks);
      if (!Is(c, kJoin) || marks > kMaxMarks || blanks > kMaxBlanks) drop_key();
    }
    ++i;
  }
  drop_key();
}

bool PairList::ReadPlain(std::string_view text) {
  const size_t size = text.size();
  size_t i = 0;
  const auto skip_blanks = [&] {
    const size_t begin = i;
    while (i < size && text[i] == ' ' && i - begin < kMaxBlanks) ++i;
    return i != begin;
  };
  while (i < size) {
    const size_t begin = i;
    while (i < size && Is(text[i], kPlainWord)) ++i;
    const std::string_view key = text.substr(begin, i - begin);
    const Meaning meaning = MeaningOf(key);
    if (meaning.key == Key::kOther || meaning.key == Key::kEvaluation) return false;
    if (i < size && text[i] == ':') ++i;
    if (!skip_blanks()) return false;
    const Number number = ReadDecimal(text.substr(i));
    if (!number || size_ == kMaxPairs) return false;
    i += number.text.size();
    const size_t unit = i;
    while (i < size && IsLetter(text[i])) ++i;
    Note(meaning, size_);
    Pair& pair = *::new (static_cast<void*>(&pairs_[size_++])) Pair;
    pair.key = key;
    pair.meaning = meaning;
    pair.value = number;
    pair.at = begin;
    if (i != unit) {
      pair.unit = text.substr(unit, i - unit);
      const double seconds = InSeconds(1, pair.unit);
      if (seconds != seconds) return false;
    }
    if (i == size) return true;
    if (text[i] == ',') ++i;
    if (!skip_blanks()) return false;
  }
  return false;
}

const Pair* PairList::Find(Key key) const {
  const uint8_t best = best_[static_cast<size_t>(key)];
  return best == kNone ? nullptr : &pairs_[best];
}

const Pair* PairList::FindNamed(std::string_view name) const {
  for (const Pair& pair : *this) {
    if (KeyIs(pair.key, name)) return &pair;
  }
  return nullptr;
}

double InSeconds(double value, std::string_view unit) {
  if (unit == "s" || unit == "sec" || unit == "secs" || unit == "seconds" || unit == "s/it" ||
      unit == "s/step") {
    return value;
  }
  if (unit == "ms" || unit == "ms/step" || unit == "ms/it") return value * 1e-3;
  if (unit == "us" || unit == "us/step") return value * 1e-6;
  return kAbsent;
}

void FillFromPairs(const PairList& pairs, Progress& progress) {
  if (const Pair* pair = pairs.Find(Key::kGradNorm)) {
    progress.grad_norm_text = pair->value.text;
    progress.grad_norm = pair->value.value;
  }
  if (const Pair* pair = pairs.Find(Key::kLearningRate)) {
    progress.learning_rate_text = pair->value.text;
    progress.learning_rate = pair->value.value;
  }
  if (const Pair* pair = pairs.Find(Key::kEpoch)) progress.epoch = pair->value.value;
  if (const Pair* pair = pairs.Find(Key::kLossScale)) progress.loss_scale = pair->value.value;
  if (const Pair* pair = pairs.Find(Key::kReward)) progress.reward = pair->value.value;
  if (const Pair* pair = pairs.Find(Key::kStepTime)) {
    const double seconds = InSeconds(pair->value.value, pair->unit);
    progress.step_seconds = pair->unit.empty() || seconds != seconds ? pair->value.value : seconds;
  } else if (const Pair* milliseconds = pairs.Find(Key::kStepMilliseconds)) {
    progress.step_seconds = milliseconds->value.value * 1e-3;
  }
}

}  // namespace rankscope::logs
