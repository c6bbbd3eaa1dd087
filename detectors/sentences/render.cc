// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/render.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <optional>

namespace rankscope::sentences {
namespace {

using features::Evidence;

constexpr double kMib = 1024.0 * 1024, kGib = 1024 * kMib;

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

std::string Lasting(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  constexpr double kLongest = 1e12;  // a stranger's number
  if (!(seconds >= 0)) return Number(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::llround(std::min(seconds, kLongest)));
  const auto two = [](int64_t large, std::string_view name, int64_t small, std::string_view unit) {
    std::string text = std::to_string(large) + std::string(name);
    return small == 0 ? text : text + " " + std::to_string(small) + std::string(unit);
  };
  if (whole < 2 * kMinute) return std::to_string(whole) + " s";
  if (whole < 2 * kHour) return std::to_string((whole + kMinute / 2) / kMinute) + " min";
  if (whole < 2 * kDay) {
    const int64_t minutes = (whole + kMinute / 2) / kMinute;
    return two(minutes / 60, " h", minutes % 60, " min");
  }
  const int64_t hours = (whole + kHour / 2) / kHour;
  return two(hours / 24, " d", hours % 24, " h");
}

std::string Whole(double value) {
  constexpr double kExact = 9e15;  // from here on a double has no halves
  if (std::abs(value) < kExact) return std::to_string(std::llround(value));
  char text[400];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

std::string Measured(double value) {
  constexpr double kWholeFrom = 1000;
  char text[32];
  if (std::abs(value) < kWholeFrom) {
    std::snprintf(text, sizeof text, "%.3g", value);
  } else {
    std::snprintf(text, sizeof text, "%.15g", std::round(value));
  }
  return text;
}

std::string Bytes(double bytes) {
  if (bytes >= kGib) return Number(bytes / kGib) + " GiB";
  if (bytes >= kMib) return Number(bytes / kMib) + " MiB";
  return Number(bytes) + " B";
}

std::string_view Words(std::string_view group, std::string_view value) {
  std::optional<std::string_view> other;
  for (const WordsRow& row : kWords) {
    if (row.group != group) continue;
    if (row.value == value) return row.words;
    if (row.value == "*") other = row.words;
  }
  return other.value_or(value);
}

std::string ThrottleReasons(double mask) {
  const auto bits = static_cast<uint32_t>(std::clamp(mask, 0.0, 4294967295.0));
  std::string text;
  for (const WordsRow& row : kWords) {
    if (row.group != "throttle") continue;
    uint32_t bit = 0;
    std::from_chars(row.value.data(), row.value.data() + row.value.size(), bit);
    if ((bits & bit) != 0) text += (text.empty() ? "" : " and ") + std::string(row.words);
  }
  return text;
}

// "0, 1 and 2"; of very many the first.
std::string List(const std::vector<int32_t>& numbers) {
  constexpr size_t kMax = 16;
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kMax; ++i) {
    if (i > 0) text += i + 1 == numbers.size() ? " and " : ", ";
    text += std::to_string(numbers[i]);
  }
  if (numbers.size() > kMax) text += " and " + std::to_string(numbers.size() - kMax) + " more";
  return text;
}

std::string TimeOfDay(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  const int64_t second = std::llround(std::clamp(seconds, 0.0, 1e15)) % kDay;
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(second / kHour),
                static_cast<int>(second / kMinute % 60), static_cast<int>(second % kMinute));
  return text;
}

// The first three of a list that ';' separates.
std::string_view Top(std::string_view list) {
  constexpr int kMax = 3;
  size_t end = list.find(';');
  for (int i = 1; i < kMax && end != std::string_view::npos; ++i) end = list.find(';', end + 1);
  return list.substr(0, end);
}

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return std::string(begin == std::string_view::npos ? std::string_view() : text.substr(begin));
}

std::string PrintText(const std::string& text, const Placeholder& how) {
  switch (how.format) {
    case Format::kWords:
      return std::string(Words(how.argument, text));
    case Format::kTop:
      return std::string(Top(text));
    case Format::kTrimmed:
      return Trimmed(text);
    default:
      return text;
  }
}

std::string PrintByType(FieldType type, double value) {
  switch (type) {
    case FieldType::kCount:
      return Whole(value);
    case FieldType::kMeasure:
      return Measured(value);
    case FieldType::kPercent:
      return Percent(value);
    case FieldType::kDuration:
      return Lasting(value);
    default:
      return Number(value);
  }
}

std::string PrintNumber(FieldType type, double value, Format format) {
  switch (format) {
    case Format::kPercent:
      return Percent(value);
    case Format::kPercent1:
      return Number(std::round(1000 * value) / 10) + " %";
    case Format::kPercent6:
      return Number(100 * value) + " %";
    case Format::kBytes:
      return Bytes(value);
    case Format::kGib:
      return Number(std::round(value / kGib * 10) / 10) + " GiB";
    case Format::kMib:
      return Whole(value / kMib);
    case Format::kMibExact:
      return Number(value / kMib);
    case Format::kMhz:
      return Whole(value / 1e6);
    case Format::kMicroseconds:
      return Measured(value * 1e6);
    case Format::kDuration:
      return Lasting(value);
    case Format::kNumber:
      return Number(value);
    case Format::kTenths:
      return Number(std::round(10 * value) / 10);
    case Format::kHundredths:
      return Number(std::round(100 * value) / 100);
    case Format::kWhole:
      return Whole(value);
    case Format::kMeasured:
      return Measured(value);
    case Format::kSignalName:
      return SignalName(static_cast<int32_t>(std::min(std::abs(value), 1e6)));
    case Format::kClock:
      return TimeOfDay(value);
    case Format::kThrottle:
      return ThrottleReasons(value);
    default:
      return PrintByType(type, value);
  }
}

// "one/many", by how the value is printed.
std::string Either(std::string_view words, bool one) {
  const size_t slash = words.find('/');
  return std::string(one ? words.substr(0, slash) : words.substr(slash + 1));
}

std::optional<FieldValue> Some(FieldId id, std::string text) {
  if (text.empty()) return std::nullopt;
  return FieldValue{id, std::move(text)};
}

std::string ProcessOf(const Evidence& e) {
  return e.process.pid != 0 ? "pid " + std::to_string(e.process.pid) : std::string();
}

std::string WhoOf(const Evidence& e) {
  std::string who = RankList(e.ranks);
  if (who.empty()) who = ProcessOf(e);
  return who.empty() ? "a process" : who;
}

std::string StoreOf(const Evidence& e) {
  std::string name = proto::Store_Name(e.store).substr(std::string_view("STORE_").size());
  for (char& c : name) c = static_cast<char>(c | 0x20);
  return name;
}

std::optional<FieldValue> AtOf(const Evidence& e) {
  if (const FieldValue* step = e.values.Find(FieldId::kStep)) {
    const FieldValue* counted = e.values.Find(FieldId::kCounted);
    return Some(FieldId::kAt,
                "at " + (counted != nullptr ? Print(*counted) : "step") + " " + Print(*step));
  }
  if (const FieldValue* step = e.values.Find(FieldId::kAtStep))
    return Some(FieldId::kAt, "at step " + Print(*step));
  if (const FieldValue* record = e.values.Find(FieldId::kRecord))
    return Some(FieldId::kAt, "at record " + Print(*record));
  return std::nullopt;
}

// What every observation has, besides its values.
std::optional<FieldValue> OfEvidence(FieldId id, const Evidence& e) {
  switch (id) {
    case FieldId::kWho:
      return Some(id, WhoOf(e));
    case FieldId::kRanks:
      return Some(id, RankList(e.ranks));
    case FieldId::kProcess:
      return Some(id, ProcessOf(e));
    case FieldId::kStore:
      return Some(id, StoreOf(e));
    case FieldId::kObserved:
      if (e.observed) return FieldValue{id, *e.observed};
      return std::nullopt;
    case FieldId::kExpected:
      if (e.expected && std::isfinite(*e.expected)) return FieldValue{id, *e.expected};
      return std::nullopt;
    case FieldId::kTimes:
      return FieldValue{id, e.times};
    case FieldId::kRepeats:
      if (e.times > 1) return FieldValue{id, e.times};
      return std::nullopt;
    case FieldId::kLine:
      // What the program wrote, where somebody's prefix stands before it.
      if (e.values.Find(id) != nullptr) return std::nullopt;
      return FieldValue{id, e.line};
    case FieldId::kAt:
      return AtOf(e);
    default:
      return std::nullopt;
  }
}

// One word, whatever a value holds.
std::string Word(std::string text) {
  constexpr size_t kLongest = 64;
  text.resize(std::min(text.size(), kLongest));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; }, '_');
  return text;
}

class Renderer {
 public:
  static constexpr bool kEvery = false;

  Renderer(const Evidence* evidence, const FieldValues& values, bool words = false)
      : evidence_(evidence), values_(values), words_(words) {}

  void Literal(std::string_view text) { text_ += text; }

  bool Value(const Placeholder& how) {
    if (evidence_ != nullptr && how.field == FieldId::kRanks && how.format != Format::kPlain) {
      text_ += how.format == Format::kList ? List(evidence_->ranks)
                                           : Either(how.argument, evidence_->ranks.size() == 1);
      return true;
    }
    const std::optional<FieldValue> value = Find(how.field);
    if (!value) return false;
    text_ += words_ ? Word(Print(*value, how)) : Print(*value, how);
    return true;
  }

  bool Holds(std::string_view condition) {
    return EachTerm(condition, [this](const Term& term) { return Holds(term); });
  }

  size_t Begin() const { return text_.size(); }
  void Undo(size_t mark) { text_.resize(mark); }
  std::string Take() { return std::move(text_); }

 private:
  std::optional<FieldValue> Find(FieldId id) const {
    if (evidence_ != nullptr) {
      if (std::optional<FieldValue> value = OfEvidence(id, *evidence_)) return value;
    }
    const FieldValue* const found = values_.Find(id);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }

  bool Holds(const Term& term) const {
    const std::optional<FieldValue> value = Find(term.field);
    if (term.test == Test::kIsNot) return !value;
    if (!value) return term.test == Test::kDiffers || term.test == Test::kBeginsNot;
    const std::string text = Print(*value);
    switch (term.test) {
      case Test::kEquals:
        return text == term.value;
      case Test::kBegins:
        return text.starts_with(term.value);
      case Test::kBeginsNot:
        return !text.starts_with(term.value);
      case Test::kDiffers:
        return text != term.value;
      case Test::kBelow:
        return NumberOf(*value) < NumberOf(term.value);
      case Test::kAtLeast:
        return NumberOf(*value) >= NumberOf(term.value);
      default:
        return true;
    }
  }

  static double NumberOf(const FieldValue& value) {
    if (const auto* whole = std::get_if<int64_t>(&value.value)) return static_cast<double>(*whole);
    const auto* const real = std::get_if<double>(&value.value);
    return real == nullptr ? std::nan("") : *real;
  }
  // Of a condition, as a template has it.
  static double NumberOf(std::string_view text) {
    double number = std::nan("");
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  const Evidence* evidence_;
  const FieldValues& values_;
  bool words_;
  std::string text_;
};

}  // namespace

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string RankList(const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return {};
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (j > i) text += (j == i + 1 ? ", " : "-") + std::to_string(ranks[j]);
    i = j + 1;
  }
  return text;
}

std::string SignalName(int32_t signal) {
  struct Row {
    int32_t number;
    std::string_view name;
  };
  constexpr Row kNames[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
                            {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
                            {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                            {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                            {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
                            {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const Row& row : kNames) {
    if (row.number == signal) return std::string(row.name);
  }
  return signal == 0 ? "a signal" : "signal " + std::to_string(signal);
}

std::string Print(const FieldValue& value, const Placeholder& how) {
  const auto* const list = std::get_if<std::vector<int32_t>>(&value.value);
  if (how.format == Format::kEither)
    return Either(how.argument, list == nullptr ? Print(value) == "1" : list->size() == 1);
  if (const auto* text = std::get_if<std::string>(&value.value)) return PrintText(*text, how);
  if (list != nullptr) return how.format == Format::kRankList ? RankList(*list) : List(*list);
  if (how.format == Format::kWords) return std::string(Words(how.argument, Print(value)));
  const FieldType type = TypeOf(value.id);
  if (const auto* whole = std::get_if<int64_t>(&value.value)) {
    if (how.format == Format::kPlain) return std::to_string(*whole);
    return PrintNumber(type, static_cast<double>(*whole), how.format);
  }
  return PrintNumber(type, std::get<double>(value.value), how.format);
}

std::string Print(const FieldValue& value) {
  return Print(value, {value.id, Format::kPlain, {}});
}

bool Holds(Condition condition, const Evidence& evidence) {
  return Renderer(&evidence, evidence.values).Holds(condition.text());
}

std::string Render(Template text, const Evidence& evidence) {
  Renderer renderer(&evidence, evidence.values);
  Walk(text.text(), renderer, false);
  return renderer.Take();
}

std::string RenderWhole(Template text, const Evidence& evidence) {
  Renderer renderer(&evidence, evidence.values);
  return Walk(text.text(), renderer, true) ? renderer.Take() : std::string();
}

std::string Render(Template text, const FieldValues& values) {
  Renderer renderer(nullptr, values);
  return Walk(text.text(), renderer, true) ? renderer.Take() : std::string();
}

std::string RenderWords(Template text, const Evidence& evidence) {
  Renderer renderer(&evidence, evidence.values, true);
  Walk(text.text(), renderer, false);
  return renderer.Take();
}

std::string RenderWords(Template text, const FieldValues& values) {
  Renderer renderer(nullptr, values, true);
  Walk(text.text(), renderer, false);
  return renderer.Take();
}

}  // namespace rankscope::sentences
