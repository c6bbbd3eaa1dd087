// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/own_line.h"

#include <algorithm>
#include <iterator>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/text/number.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

constexpr int kMaxParts = 10;     // time, host, process, level, name, file, label: seven in use
constexpr size_t kMaxName = 64;   // a host's or a pod's
constexpr size_t kMaxInner = 96;  // of a bracket: a file's path and a line

char At(std::string_view text, size_t i) {
  return i < text.size() ? text[i] : '\0';
}

bool EndsPart(std::string_view text, size_t i) {
  return i >= text.size() || IsBlank(text[i]) || text[i] == ']' || text[i] == '|' || text[i] == ':';
}

size_t Digits(std::string_view text, size_t i) {
  const size_t begin = i;
  while (i < text.size() && IsDigit(text[i])) ++i;
  return i - begin;
}

// "04:05:06", "4:05:06.789", "04:05:06,789", a zone behind it: where it ends; `i` where none is.
size_t EndOfClock(std::string_view text, size_t i) {
  const size_t hours = Digits(text, i);
  if (hours == 0 || hours > 2) return i;
  size_t end = i + hours;
  for (int part = 0; part < 2; ++part) {
    if (At(text, end) != ':' || Digits(text, end + 1) != 2) return i;
    end += 3;
  }
  if ((At(text, end) == '.' || At(text, end) == ',') && IsDigit(At(text, end + 1)))
    end += 1 + Digits(text, end + 1);
  if (At(text, end) == 'Z') return end + 1;
  const size_t zone = At(text, end) == ' ' ? end + 1 : end;  // "+0100", "+01:00"
  if ((At(text, zone) == '+' || (At(text, zone) == '-' && zone == end)) &&
      IsDigit(At(text, zone + 1))) {
    const size_t digits = Digits(text, zone + 1);
    if (digits == 4) return zone + 5;
    if (digits == 2 && At(text, zone + 3) == ':' && Digits(text, zone + 4) == 2) return zone + 6;
  }
  return end;
}

// "2026-02-03", "2026/02/03", "02/03/2026", "02/03/26", "02/03": where it ends; 0 where none is.
size_t EndOfDate(std::string_view text) {
  const size_t first = Digits(text, 0);
  const char mark = At(text, first);
  if ((first != 2 && first != 4) || (mark != '-' && mark != '/') || Digits(text, first + 1) != 2)
    return 0;
  const size_t two = first + 3;
  if (At(text, two) != mark) return first == 2 ? two : 0;
  const size_t third = Digits(text, two + 1);
  const bool fits = first == 4 ? third == 2 : third == 2 || third == 4;
  return fits ? two + 1 + third : 0;
}

// "Feb 03 04:05:06", "Tue Feb  3 04:05:06 2026": where it ends; 0 where none is.
size_t EndOfMonthTime(std::string_view text) {
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  static constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
  const auto names = [text](std::string_view list, size_t i) {
    const size_t at = i + 4 <= text.size() && text[i + 3] == ' ' ? list.find(text.substr(i, 3))
                                                                 : std::string_view::npos;
    return at != std::string_view::npos && at % 3 == 0;
  };
  const bool weekday = names(kDays, 0);
  size_t i = weekday ? 4 : 0;
  if (!names(kMonths, i)) return 0;
  i += 4;
  if (At(text, i) == ' ') ++i;
  const size_t day = Digits(text, i);
  if (day == 0 || day > 2 || At(text, i + day) != ' ') return 0;
  i += day + 1;
  const size_t end = EndOfClock(text, i);
  if (end == i) return 0;
  const bool year = weekday && At(text, end) == ' ' && Digits(text, end + 1) == 4;
  return year ? end + 5 : end;
}

// A time at the start of `text`: where it ends; 0 where none is. A date alone is none.
size_t EndOfTime(std::string_view text) {
  if (text.empty()) return 0;
  size_t end = 0;
  if (IsLetter(text[0])) {
    end = EndOfMonthTime(text);
  } else if (IsDigit(text[0])) {
    constexpr size_t kSeconds = 10;  // since 1970, with a fraction
    const size_t digits = Digits(text, 0);
    if (digits == kSeconds && text[0] == '1' && At(text, digits) == '.' &&
        Digits(text, digits + 1) > 0) {
      end = digits + 1 + Digits(text, digits + 1);
    } else {
      const size_t date = EndOfDate(text);
      const char joint = At(text, date);
      const bool joined = joint == ' ' || joint == 'T' || joint == '_';
      const size_t begin = date == 0 ? 0 : date + 1;
      if (date == 0 || joined) end = EndOfClock(text, begin);
      if (end == begin) end = 0;
    }
  }
  return end != 0 && EndsPart(text, end) ? end : 0;
}

bool IsLevel(std::string_view word) {
  static constexpr std::string_view kLevels[] = {
      "TRACE",   "DEBUG", "INFO",  "NOTICE", "WARN",    "ERROR", "CRITICAL", "FATAL", "WARNING",
      "SUCCESS", "info",  "debug", "warn",   "warning", "error", "Info",     "Debug", "LOG"};
  return std::find(std::begin(kLevels), std::end(kLevels), word) != std::end(kLevels);
}

// Whether a record may begin with one of the words of `name`: it is no host's or logger's then.
bool Tells(std::string_view name) {
  while (!name.empty()) {
    size_t end = 0;
    while (end < name.size() && IsLetter(name[end])) ++end;
    const std::string_view word = name.substr(0, end);
    const Key key = MeaningOf(word).key;
    if (key != Key::kOther && key != Key::kTime) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

size_t NameLength(std::string_view text, std::string_view marks) {
  size_t i = 0;
  while (i < text.size() && i < kMaxName &&
         (IsWordByte(text[i]) || marks.find(text[i]) != std::string_view::npos))
    ++i;
  return i;
}

// "llm-train-0", "llm-7d9f-x2k4q": of lower-case letters and digits, parts joined by '-'.
bool IsPod(std::string_view name) {
  bool joined = false;
  bool digit = false;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') return false;
    if (c == '_') return false;
    joined = joined || c == '-';
    digit = digit || IsDigit(c);
  }
  return joined && digit;
}

class Peeler {
 public:
  explicit Peeler(std::string_view text) : rest_(text) {}

  std::string_view Peel() {
    std::string_view own = rest_;
    for (int part = 0; part < kMaxParts && TakePart(); ++part) {
      own = rest_;
      SkipJoint();
      // The bar of a table's row joins nothing.
      own = LeftTrimmed(own);
      row_ = own.starts_with('|') && Trimmed(own).ends_with('|');
      if (!row_) own = rest_;
      rest_ = LeftTrimmed(rest_);
    }
    return own;
  }
  bool found() const { return time_ || level_ || host_; }

 private:
  // What stands behind a part: "- ", "| ", ": ", ">> ", and one blank. More is the program's
  // indentation.
  void SkipJoint() {
    const std::string_view trimmed = LeftTrimmed(rest_);
    size_t joint = 0;
    for (const std::string_view mark : {"- ", "|", ":", ">> ", "> "}) {
      if (found() && joint == 0 && trimmed.starts_with(mark)) joint = Trimmed(mark).size();
    }
    if (joint != 0) rest_ = trimmed.substr(joint);
    if (!rest_.empty() && IsBlank(rest_[0])) rest_.remove_prefix(1);
  }

  bool Take(size_t size, bool& what) {
    what = true;
    rest_.remove_prefix(std::min(size, rest_.size()));
    return true;
  }

  bool TakePart() {
    if (rest_.empty()) return false;
    const char first = rest_[0];
    if (first == '[' || first == '(') return TakeLabel() || TakeBracket();
    if (IsDigit(first)) return TakeTimed() || TakeAddress();
    if (!IsLetter(first) && first != '_') return false;
    return TakeTimed() || TakeGlog() || TakeLevel() || TakeName() || TakeHost();
  }

  bool TakeTimed() {
    const size_t end = EndOfTime(rest_);
    return end != 0 && Take(end, time_);
  }

  // A launcher's label, behind what a shipper put before it.
  bool TakeLabel() {
    if (!found()) return false;
    const Unprefixed inner = StripLauncherPrefixes(rest_);
    if (inner.text.size() == rest_.size()) return false;
    rest_ = inner.text;
    return true;
  }

  // "[2026-02-03 04:05:06,789]", "[INFO]", "[__main__]", "(main.py 246)", "[rank 0]".
  bool TakeBracket() {
    const size_t close = rest_.substr(0, kMaxInner).find(rest_[0] == '[' ? ']' : ')');
    if (close == std::string_view::npos) return false;
    std::string_view inner = Trimmed(rest_.substr(1, close - 1));
    const size_t end = EndOfTime(inner);
    bool& what = end != 0                                                ? time_
                 : IsLevel(inner.substr(0, inner.find_first_of(" |,:"))) ? level_
                                                                         : other_;
    inner = Trimmed(inner.substr(end));
    if (inner.empty()) return end != 0 && Take(close + 1, what);
    if (!IsLetter(inner[0]) && inner[0] != '_') return false;
    if (Tells(inner) || inner.find('=') != std::string_view::npos) return false;
    return Take(close + 1, what);
  }

  // "I0102 03:04:05.678901 1234 file.py:56] ".
  bool TakeGlog() {
    if (std::string_view("IWEF").find(rest_[0]) == std::string_view::npos || Digits(rest_, 1) < 4 ||
        EndOfTime(LeftTrimmed(rest_.substr(1 + Digits(rest_, 1)))) == 0) {
      return false;
    }
    const size_t close = rest_.substr(0, 2 * kMaxInner).find("] ");
    return close != std::string_view::npos && Take(close + 2, level_);
  }

  // "INFO", "INFO:", "INFO:root:".
  bool TakeLevel() {
    const size_t size = NameLength(rest_, {});
    if (!EndsPart(rest_, size) || size == rest_.size() || !IsLevel(rest_.substr(0, size)))
      return false;
    if (rest_[size] == ':' && size + 1 < rest_.size() && rest_[size + 1] != ' ') {
      const std::string_view behind = rest_.substr(size + 1);
      const size_t name = NameLength(behind, ".-");
      if (name != 0 && At(behind, name) == ':' && !Tells(behind.substr(0, name)))
        return Take(size + name + 2, level_);
    }
    return Take(size, level_);
  }

  // A logger's name, behind a time or a level: "__main__:train:212 - ", "ppdet.engine INFO: ".
  bool TakeName() {
    if (!time_ && !level_) return false;
    const size_t size = NameLength(rest_, ".:/-");
    if (size == 0 || size + 1 >= rest_.size()) return false;
    std::string_view name = rest_.substr(0, size);
    const bool colon = name.ends_with(':');
    if (colon) name.remove_suffix(1);
    if (Tells(name) || name.empty()) return false;
    std::string_view behind = rest_.substr(size);
    if (At(behind, 0) == '[') {  // "node7 python3[4123]: "
      const size_t id = Digits(behind, 1);
      if (id == 0 || !behind.substr(1 + id).starts_with("]: ")) return false;
      return Take(size + id + 3, other_);
    }
    if (!IsBlank(behind[0])) return false;
    behind = LeftTrimmed(behind);
    if (behind.empty()) return false;
    // "Train: [0/300]" is a record's first word.
    if (colon) {
      return IsLetter(behind[0]) && !KeyIs(name, "train") && !KeyIs(name, "training") &&
             Take(size, other_);
    }
    const bool joined = behind.starts_with("- ") || (!row_ && behind.starts_with("| ")) ||
                        behind.starts_with(">> ");
    if (joined) return Take(size, other_);
    // A host before its process, a name before its level.
    const size_t next = NameLength(behind, "._-");
    const bool process = At(behind, next) == '[' && Digits(behind, next + 1) != 0;
    const bool level = next != 0 && EndsPart(behind, next) && IsLevel(behind.substr(0, next));
    return (process || level) && Take(size, other_);
  }

  static bool IsNumberLike(std::string_view text) {
    return IsDigit(text[0]) || ((text[0] == '-' || text[0] == '.') && IsDigit(At(text, 1)));
  }

  // "10.0.0.12: " (pdsh).
  bool TakeAddress() {
    size_t i = 0;
    for (int part = 0; part < 4; ++part) {
      const size_t digits = Digits(rest_, i);
      if (digits == 0 || digits > 3) return false;
      i += digits;
      if (part < 3 && At(rest_, i++) != '.') return false;
    }
    return At(rest_, i) == ':' && At(rest_, i + 1) == ' ' && Take(i + 2, host_);
  }

  // "gpu012 | ", "gpu012: ", "trainer/0 " (torchx), "llm-train-0 pytorch " (stern).
  bool TakeHost() {
    if (level_ || host_) return false;
    const size_t size = NameLength(rest_, "-.");
    const std::string_view name = rest_.substr(0, size);
    if (size < 3 || size == kMaxName || size + 2 >= rest_.size() || Tells(name)) return false;
    const std::string_view behind = rest_.substr(size);
    const bool counted = IsDigit(name.back());
    if (counted && behind.starts_with(" | ")) return Take(size + 3, host_);
    if (counted && behind.starts_with(": ") && !IsNumberLike(behind.substr(2)))
      return Take(size + 2, host_);
    if (behind[0] == '/') {
      const size_t digits = Digits(behind, 1);
      return digits != 0 && digits < 6 && At(behind, 1 + digits) == ' ' &&
             Take(size + 2 + digits, host_);
    }
    if (behind[0] != ' ' || !IsPod(name)) return false;
    const size_t container = NameLength(behind.substr(1), "-");
    const std::string_view second = behind.substr(1, container);
    return container > 2 && At(behind, 1 + container) == ' ' && IsLetter(second[0]) &&
           !Tells(second) && Take(size + container + 2, host_);
  }

  std::string_view rest_;
  bool time_ = false;
  bool level_ = false;
  bool host_ = false;
  bool other_ = false;
  bool row_ = false;  // perhaps of a table, from here on
};

}  // namespace

std::string_view OwnLine(std::string_view text) {
  // What is indented belongs to the line above.
  if (text.empty() || IsBlank(text[0]) || text[0] == '{' || text[0] == '|') return text;
  Peeler peeler(text);
  const std::string_view own = peeler.Peel();
  return peeler.found() ? own : text;
}

}  // namespace rankscope::logs
