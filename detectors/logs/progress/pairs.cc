// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/pairs.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <new>

#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

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

// Between a word and its number: "Step [  100", "loss  =  (". More means that the number is not the
// word's.
constexpr size_t kMaxMarks = 4;
constexpr size_t kMaxBlanks = 16;

}  // namespace

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

// Whether a number with this meaning may be a duration, written as a clock.
bool MayBeClock(Key key) {
  return key == Key::kOther || key == Key::kElapsed || key == Key::kTime || key == Key::kStepTime;
}

// "val: n/a": what was not measured is written so.
bool SaysNothing(std::string_view value) {
  return value == "n/a" || value == "N/A" || value == "None" || value == "null";
}

// ":02:03" or ":02" at `i`, behind the hours or minutes `first`: takes it and returns the seconds;
// 0 parts taken where it is none.
double TakeClock(std::string_view text, size_t& i, double first) {
  double seconds = first;
  size_t end = i;
  for (int part = 0; part < 2; ++part) {
    if (end + 2 >= text.size() || text[end] != ':' || !IsDigit(text[end + 1]) ||
        !IsDigit(text[end + 2])) {
      break;
    }
    seconds = seconds * 60 + (text[end + 1] - '0') * 10 + (text[end + 2] - '0');
    end += 3;
  }
  if (end < text.size() && (IsWordByte(text[end]) || text[end] == ':' || text[end] == '/'))
    return kAbsent;
  i = end;
  return seconds;
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

// "step": [0, 17]: the epoch, then the step within it.
void TakeLastOfList(std::string_view text, size_t& i, Pair& pair) {
  const size_t begin = i - pair.value.text.size();
  if (begin == 0 || text[begin - 1] != '[') return;
  size_t end = i;
  Number last = pair.value;
  while (end < text.size() && text[end] == ',') {
    size_t next = end + 1;
    while (next < text.size() && IsBlank(text[next])) ++next;
    const Number number = ReadDecimal(text.substr(next));
    if (!IsIndex(number)) return;
    last = number;
    end = next + number.text.size();
  }
  if (end == i || end >= text.size() || text[end] != ']') return;
  pair.value = last;
  i = end;
}

constexpr bool IsIndexed(Key key) {
  return key == Key::kLearningRate || key == Key::kLoss || key == Key::kGradNorm;
}

// "(PiecewiseDecay)", "(avg)" behind a key, before its ':' or '=': how the value was made. Returns
// where that sign stands; 0 where the bracket is none of these.
size_t EndOfRemark(std::string_view text, size_t begin, size_t end) {
  if (begin == 0 || text[begin - 1] != '(' || end + 1 >= text.size() || text[end] != ')') return 0;
  if (text[end + 1] != ':' && text[end + 1] != '=') return 0;
  return MeaningOf(text.substr(begin, end - begin)).key == Key::kEvaluation ? 0 : end + 1;
}

// "53.1ms" and "53.1 ms"; "200/2983 batches".
void TakeUnit(std::string_view text, size_t& i, Pair& pair) {
  size_t j = i;
  if (j < text.size() && text[j] == ' ') ++j;
  size_t unit = j;
  while (unit < text.size() && (IsLetter(text[unit]) || text[unit] == '/')) ++unit;
  pair.unit = text.substr(j, unit - j);
  pair.percent = j < text.size() && text[j] == '%';
  if (j == i) i = unit;  // a glued unit is no key of what follows
}

// "tensor(", "np.float64(" before one number, with whatever its repr says behind it up to ')'.
// Returns where the number begins; 0 where there is no such wrapper, or a vector in it.
size_t EndOfWrapper(std::string_view text, size_t begin, size_t end) {
  static constexpr std::string_view kWrappers[] = {"tensor", "float16", "float32", "float64",
                                                   "array"};
  std::string_view name = text.substr(begin, end - begin);
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos)
    name.remove_prefix(dot + 1);
  if (end + 1 >= text.size() || text[end] != '(') return 0;
  if (std::find(std::begin(kWrappers), std::end(kWrappers), name) == std::end(kWrappers)) return 0;
  const Number number = ReadNumber(text.substr(end + 1));
  if (!number) return 0;
  const char behind =
      end + 1 + number.text.size() < text.size() ? text[end + 1 + number.text.size()] : '\0';
  return behind == ',' || behind == ')' ? end + 1 : 0;
}

// "lr[0]=3e-4", "lr(1e-3):0.005": the number in the bracket is part of the name. Returns where the
// value begins; 0 where the bracket holds the value itself.
size_t EndOfIndexedKey(std::string_view text, size_t key_end, size_t behind_number) {
  if (key_end >= text.size() || behind_number + 1 >= text.size()) return 0;
  const char close = text[key_end] == '[' ? ']' : text[key_end] == '(' ? ')' : '\0';
  if (close == '\0' || text[behind_number] != close) return 0;
  size_t i = behind_number + 1;
  if (i >= text.size() || (text[i] != '=' && text[i] != ':')) return 0;
  ++i;
  while (i < text.size() && IsBlank(text[i])) ++i;
  return i < text.size() && (IsDigit(text[i]) || text[i] == '-' || text[i] == '.') ? i : 0;
}

// "step 10 312 ms loss 2.1": the unit of the number before is no part of the name.
void DropUnit(const Pair& before, Pair& pair) {
  static constexpr std::string_view kUnits[] = {
      "ms", "s",   "sec", "s/it", "it/s",   "tok/s",   "img/s",    "imgs/s",
      "GB", "GiB", "MB",  "MiB",  "TFLOPS", "TFLOP/s", "tokens/s", "samples/s"};
  const size_t blank = pair.key.find(' ');
  if (blank == std::string_view::npos || pair.key.substr(0, blank) != before.unit) return;
  if (std::find(std::begin(kUnits), std::end(kUnits), before.unit) == std::end(kUnits)) return;
  pair.key.remove_prefix(blank + 1);
  pair.at += blank + 1;
  pair.meaning = MeaningOf(pair.key);
}

// "/ 1000" and "of 1000" behind a number.
void TakeTotal(std::string_view text, size_t& i, Pair& pair) {
  size_t j = i;
  while (j < text.size() && IsBlank(text[j])) ++j;
  if (j >= text.size()) return;
  if (text[j] != '/' && (text[j] != 'o' || !text.substr(j).starts_with("of "))) return;
  j += text[j] == '/' ? 1 : 3;
  while (j < text.size() && IsBlank(text[j])) ++j;
  const Number total = ReadNumber(text.substr(j), Ending::kDelimiter, Thousands::kYes);
  if (!total) return;
  pair.total = total;
  i = j + total.text.size();
}

inline void PairList::Drop(std::string_view text, OpenKey& key) {
  if (key) Stray(text.substr(key.begin, key.end - key.begin));
  key = {};
}

// Names the number at `i` by the open key. False where the bracket behind the key is part of it and
// nothing that is read follows.
inline bool PairList::Name(std::string_view text, size_t& i, const OpenKey& key, Number& number,
                           Pair& pair) {
  pair.key = text.substr(key.begin, key.end - key.begin);
  pair.meaning = MeaningOf(pair.key);
  pair.at = key.begin;
  if (pair.meaning.key == Key::kOther && size_ != 0) DropUnit(pairs_[size_ - 1], pair);
  if (pair.meaning.key == Key::kOther) TakeLastWord(pair);
  if (!IsIndexed(pair.meaning.key)) return true;
  const size_t value = EndOfIndexedKey(text, key.end, i + number.text.size());
  if (value == 0) return true;
  // A unit ("1e-3") in the bracket scales the value: it is not what it seems to be.
  if (!IsIndex(number)) pair.meaning = {};
  i = value;
  number = ReadNumber(text.substr(i), Ending::kUnit);
  return static_cast<bool>(number);
}

// Takes the number at `i` with all that belongs to it.
inline void PairList::TakeNumber(std::string_view text, size_t& i, OpenKey& key, Number number) {
  Pair pair;
  pair.at = i;
  if (key && !Name(text, i, key, number, pair)) return Drop(text, key);
  pair.value = number;
  const bool wrapped = key.wrapped;
  key = {};
  i += number.text.size();
  if (wrapped) {
    i = std::min(text.find(')', i), text.size() - 1) + 1;
    return Add(pair);
  }
  if (pair.meaning.key == Key::kStep) TakeLastOfList(text, i, pair);
  if (i + 2 < text.size() && text[i] == ':' && IsDigit(text[i + 1]) &&
      MayBeClock(pair.meaning.key) && IsIndex(number)) {
    const double seconds = TakeClock(text, i, number.value);
    if (seconds == seconds) {
      pair.value.value = seconds;
      pair.unit = "s";
      return Add(pair);
    }
  }
  TakeTotal(text, i, pair);
  TakeUnit(text, i, pair);
  Add(pair);
}

// Takes the word at `i`: a key, more of one, or what says how the value is written.
inline void PairList::TakeWord(std::string_view text, size_t& i, OpenKey& key) {
  size_t end = i + 1;
  while (end < text.size() && Is(text[end], kKeyByte)) ++end;
  // "loss." at the end of a sentence, "key-" before a value
  while (end > i + 1 && (text[end - 1] == '.' || text[end - 1] == '-')) --end;
  if (key && key.marks == 0 && key.blanks == 1) {  // another word of the same key
    key.end = end;
    key.blanks = 0;
    i = end;
    return;
  }
  if (key && key.marks > 0) {
    if (const size_t value = EndOfWrapper(text, i, end)) {
      key.wrapped = true;
      i = value;
      return;
    }
    const size_t remark = key.marks == 1 ? EndOfRemark(text, i, end) : 0;
    if (remark != 0 && IsIndexed(MeaningOf(text.substr(key.begin, key.end - key.begin)).key)) {
      i = remark;
      return;
    }
    if (SaysNothing(text.substr(i, end - i))) {  // neither the key nor the word tells of anything
      key = {};
      i = end;
      return;
    }
  }
  Drop(text, key);
  key.begin = i;
  key.end = end;
  i = end;
}

PairList::PairList(std::string_view text) {
  size_t i = 0;
  OpenKey key;
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
      TakeNumber(text, i, key, number);
      continue;
    }
    if (Is(c, kKeyBegin)) {
      TakeWord(text, i, key);
      continue;
    }
    if (key) {
      ++(IsBlank(c) ? key.blanks : key.marks);
      if (!Is(c, kJoin) || key.marks > kMaxMarks || key.blanks > kMaxBlanks) Drop(text, key);
    }
    ++i;
  }
  Drop(text, key);
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
    if (meaning.key == Key::kTokensPerSecond) return false;  // torchtitan's
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

void FillFromPairs(const PairList& pairs, Progress& progress) {
  for (const Pair& pair : pairs) {
    const Key key = pair.meaning.key;
    if (key == Key::kOther || key == Key::kStep || key == Key::kLoss || pairs.Find(key) != &pair)
      continue;
    if (key == Key::kGradNorm) {
      SetGradNorm(progress, pair.value);
    } else if (key == Key::kLearningRate) {
      SetLearningRate(progress, pair.value);
    } else if (key != Key::kStepMilliseconds || pairs.Find(Key::kStepTime) == nullptr) {
      const bool rate = key == Key::kTokensPerSecond || key == Key::kSamplesPerSecond;
      const double scale = !rate                                  ? 1
                           : pair.unit == "K" || pair.unit == "k" ? 1e3
                           : pair.unit == "M"                     ? 1e6
                                                                  : 1;
      SetFact(progress, key, pair.value.value * scale, pair.unit, pair.percent);
    }
  }
}

}  // namespace rankscope::logs
