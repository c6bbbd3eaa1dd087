// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <limits>
#include <system_error>

#include "detectors/model/ascii.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr std::array<std::string_view, 9> kNothing = {
    "(null)", "None", "N/A", "None assigned", "Unknown", "n/a", "NONE", "none", "Not Set",
};

// 10,000 years: what is beyond is no time of a job, and sums of two stay far from overflow.
constexpr int64_t kMostSeconds = 315'360'000'000;

constexpr size_t kMaxStateWords = 32;  // Slurm has 24 flags of nodes

char Upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

std::string InCapitals(std::string_view text) {
  std::string capitals(text.substr(0, 64));
  std::transform(capitals.begin(), capitals.end(), capitals.begin(), Upper);
  return capitals;
}

std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return taken;
}

// Digits only: no sign, no more than a duration or a date needs.
std::optional<int64_t> ReadPart(std::string_view text) {
  if (text.empty() || text.size() > 9 || !std::all_of(text.begin(), text.end(), IsDigit)) {
    return std::nullopt;
  }
  return ReadInteger(text);
}

// 1024-fold for each letter. Slurm's own units are these, whatever the letters promise.
std::optional<double> UnitOf(char letter) {
  constexpr std::string_view kLetters = "KMGTP";
  const size_t at = kLetters.find(Upper(letter));
  if (at == std::string_view::npos) return std::nullopt;
  return std::ldexp(1.0, 10 * (static_cast<int>(at) + 1));
}

// A number, a unit or none behind it.
std::optional<int64_t> ReadScaled(std::string_view text, double unit) {
  if (text.empty() || !IsDigit(text.front())) return std::nullopt;
  if (const auto letter = UnitOf(text.back())) {
    unit = *letter;
    text.remove_suffix(1);
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || last != end) return std::nullopt;
  value *= unit;
  if (!(value >= 0 && value < 9e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// YYYY-MM-DDTHH:MM:SS
std::optional<std::tm> ReadCalendar(std::string_view text) {
  if (text.size() != 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  const auto year = ReadPart(text.substr(0, 4));
  const auto month = ReadPart(text.substr(5, 2));
  const auto day = ReadPart(text.substr(8, 2));
  const auto hour = ReadPart(text.substr(11, 2));
  const auto minute = ReadPart(text.substr(14, 2));
  const auto second = ReadPart(text.substr(17, 2));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*year < 1970 || *month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 ||
      *minute > 59 || *second > 60) {
    return std::nullopt;
  }
  std::tm calendar{};
  calendar.tm_year = static_cast<int>(*year - 1900);
  calendar.tm_mon = static_cast<int>(*month - 1);
  calendar.tm_mday = static_cast<int>(*day);
  calendar.tm_hour = static_cast<int>(*hour);
  calendar.tm_min = static_cast<int>(*minute);
  calendar.tm_sec = static_cast<int>(*second);
  calendar.tm_isdst = -1;  // Slurm does not print whether it was summer
  return calendar;
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// "gpu", "gpu:2", "gpu:a100", "gpu:a100:4", each with or without what stands in brackets.
std::optional<int64_t> GpusOfOneGres(std::string_view item) {
  for (const std::string_view prefix : {"gres:", "gres/"}) {
    if (item.starts_with(prefix)) item.remove_prefix(prefix.size());
  }
  item = item.substr(0, item.find('('));
  if (TakeUntil(item, ':') != "gpu") return std::nullopt;
  if (item.empty()) return 1;
  const size_t last = item.rfind(':');
  const std::string_view count = last == std::string_view::npos ? item : item.substr(last + 1);
  if (const auto number = ReadCount(count)) return number;
  return last == std::string_view::npos ? std::optional<int64_t>(1) : std::nullopt;
}

constexpr std::array<std::string_view, 12> kJobStates = {
    "PENDING", "RUNNING",   "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED",
    "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY",
};

constexpr std::array<std::string_view, 7> kNodeStates = {
    "UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE",
};

// The signs that stand behind a state where it is printed short (sinfo(1), NODE STATE CODES).
struct StateSign {
  char sign;
  std::string_view flag;
};
constexpr StateSign kStateSigns[] = {
    {'*', "NOT_RESPONDING"},   {'~', "POWERED_DOWN"},  {'#', "POWERING_UP"},
    {'!', "POWER_DOWN"},       {'%', "POWERING_DOWN"}, {'$', "MAINTENANCE"},
    {'@', "REBOOT_REQUESTED"}, {'^', "REBOOT_ISSUED"}, {'-', "PLANNED"},
};

template <size_t kSize>
StateWords WordsOf(const std::vector<std::string>& words,
                   const std::array<std::string_view, kSize>& bases) {
  StateWords state;
  for (const std::string& word : words) {
    if (state.flags.size() >= kMaxStateWords) break;
    std::string capitals = InCapitals(word);
    if (capitals.empty()) continue;
    const bool base = std::find(bases.begin(), bases.end(), capitals) != bases.end();
    if (base && state.base.empty()) {
      state.base = std::move(capitals);
    } else if (capitals != state.base &&
               std::find(state.flags.begin(), state.flags.end(), capitals) == state.flags.end()) {
      state.flags.push_back(std::move(capitals));
    }
  }
  return state;
}

}  // namespace

std::string_view Said(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
  const bool nothing =
      text.size() <= 13 && std::find(kNothing.begin(), kNothing.end(), text) != kNothing.end();
  return nothing ? std::string_view() : text;
}

std::optional<int64_t> ReadInteger(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end) return std::nullopt;
  return value;
}

std::optional<int64_t> ReadCount(std::string_view text) {
  return ReadScaled(text.substr(0, text.find('-')), 1);
}

std::optional<int64_t> ReadDuration(std::string_view text) {
  int64_t seconds = 0;
  const size_t dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  if (days) {
    const auto count = ReadPart(text.substr(0, dash));
    if (!count) return std::nullopt;
    seconds = *count * 86400;
    text.remove_prefix(dash + 1);
  }
  std::array<int64_t, 3> parts{};
  size_t count = 0;
  while (!text.empty()) {
    if (count == parts.size()) return std::nullopt;
    std::string_view part = TakeUntil(text, ':');
    if (text.empty()) part = part.substr(0, part.find('.'));  // sacct's CPU times have fractions
    const auto value = ReadPart(part);
    if (!value) return std::nullopt;
    parts[count++] = *value;
  }
  if (count == 0 || (count == 1 && !days)) return std::nullopt;
  // Behind days the first is hours; without them the last is seconds.
  const size_t skipped = days ? 0 : parts.size() - count;
  constexpr std::array<int64_t, 3> kUnits = {3600, 60, 1};
  for (size_t i = 0; i < count; ++i) seconds += parts[i] * kUnits[i + skipped];
  if (seconds > kMostSeconds) return std::nullopt;
  return seconds;
}

int64_t ReadTime(std::string_view text) {
  if (const auto seconds = ReadInteger(text)) {
    return *seconds > 0 && *seconds < kMostSeconds ? *seconds : 0;
  }
  auto calendar = ReadCalendar(text);
  if (!calendar) return 0;
  return std::max<int64_t>(0, std::mktime(&*calendar));
}

std::optional<ExitStatus> ReadExit(std::string_view text) {
  const std::string_view code_text = TakeUntil(text, ':');
  const auto code = ReadPart(code_text);
  const auto signal = ReadPart(text);
  if (!code || !signal) return std::nullopt;
  return ExitStatus{static_cast<int32_t>(*code), static_cast<int32_t>(*signal)};
}

std::optional<ExitStatus> ExitOfWaitStatus(int64_t status) {
  if (status < 0 || status > 0xffff) return std::nullopt;  // NO_VAL is 0xfffffffe
  return ExitStatus{static_cast<int32_t>(status >> 8), static_cast<int32_t>(status & 0x7f)};
}

std::optional<int64_t> ReadMemory(std::string_view text) {
  if (text.size() > 1 && (text.back() == 'n' || text.back() == 'c')) text.remove_suffix(1);
  return ReadScaled(text, 1024.0 * 1024.0);
}

std::optional<int64_t> GpusOfTres(std::string_view text) {
  text = Said(text);
  if (text.empty()) return std::nullopt;
  int64_t typed = 0;
  while (!text.empty()) {
    std::string_view item = TakeUntil(text, ',');
    const std::string_view name = TakeUntil(item, '=');
    const auto count = ReadCount(item);
    if (!count) continue;
    if (name == "gres/gpu") return count;  // the sum over types
    if (name.starts_with("gres/gpu:")) typed = Sum(typed, *count);
  }
  return typed;
}

std::optional<int64_t> GpusOfGres(std::string_view text) {
  text = Said(text);
  if (text.empty()) return std::nullopt;
  int64_t gpus = 0;
  int depth = 0;  // commas within "(IDX:0,2)" part no items
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '(') ++depth;
    if (c == ')') depth = std::max(0, depth - 1);
    if (i < text.size() && (c != ',' || depth > 0)) continue;
    if (const auto count = GpusOfOneGres(text.substr(begin, i - begin))) gpus = Sum(gpus, *count);
    begin = i + 1;
  }
  return gpus;
}

StateWords JobStateOf(const std::vector<std::string>& words) {
  return WordsOf(words, kJobStates);
}

StateWords NodeStateOf(const std::vector<std::string>& words) {
  return WordsOf(words, kNodeStates);
}

StateWords ReadJobState(std::string_view text) {
  text = Said(text);
  const size_t by = text.find(" by ");
  const std::string_view who =
      by == std::string_view::npos ? std::string_view() : Said(text.substr(by + 4));
  std::vector<std::string> words;
  std::string_view rest = text.substr(0, by);
  while (!rest.empty() && words.size() < kMaxStateWords) {
    words.emplace_back(TakeUntil(rest, '+').substr(0, 64));
  }
  StateWords state = JobStateOf(words);
  state.by = who.substr(0, 64);
  return state;
}

StateWords ReadNodeState(std::string_view text) {
  text = Said(text);
  std::vector<std::string> words;
  while (!text.empty() && words.size() < kMaxStateWords) {
    std::string_view word = TakeUntil(text, '+');
    std::vector<std::string> signs;
    while (!word.empty()) {
      const auto* sign =
          std::find_if(std::begin(kStateSigns), std::end(kStateSigns),
                       [&](const StateSign& row) { return row.sign == word.back(); });
      if (sign == std::end(kStateSigns)) break;
      signs.emplace_back(sign->flag);
      word.remove_suffix(1);
    }
    words.emplace_back(word.substr(0, 64));
    words.insert(words.end(), signs.begin(), signs.end());
  }
  return NodeStateOf(words);
}

bool IsEndState(std::string_view state) {
  return !state.empty() && state != "PENDING" && state != "RUNNING" && state != "SUSPENDED" &&
         std::find(kJobStates.begin(), kJobStates.end(), state) != kJobStates.end();
}

}  // namespace rankscope::exporter::slurm
