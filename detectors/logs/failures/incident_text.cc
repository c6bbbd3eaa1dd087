// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/incident_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

struct SignalRow {
  int32_t number;
  std::string_view name;         // without SIG
  std::string_view description;  // glibc's strsignal()
};

constexpr SignalRow kSignals[] = {
    {1, "HUP", "Hangup"},
    {2, "INT", "Interrupt"},
    {3, "QUIT", "Quit"},
    {4, "ILL", "Illegal instruction"},
    {5, "TRAP", "Trace/breakpoint trap"},
    {6, "ABRT", "Aborted"},
    {7, "BUS", "Bus error"},
    {8, "FPE", "Floating point exception"},
    {9, "KILL", "Killed"},
    {10, "USR1", "User defined signal 1"},
    {11, "SEGV", "Segmentation fault"},
    {12, "USR2", "User defined signal 2"},
    {13, "PIPE", "Broken pipe"},
    {14, "ALRM", "Alarm clock"},
    {15, "TERM", "Terminated"},
    {19, "STOP", "Stopped (signal)"},
    {24, "XCPU", "CPU time limit exceeded"},
    {25, "XFSZ", "File size limit exceeded"},
    {31, "SYS", "Bad system call"},
};

struct UnitRow {
  std::string_view name;
  int shift;
};

constexpr UnitRow kUnits[] = {
    {"bytes", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"PiB", 50},
    {"kB", 10},   {"KB", 10},  {"MB", 20},  {"GB", 30},  {"TB", 40},  {"B", 0},
};

}  // namespace

bool ContainsAny(std::string_view text, std::span<const std::string_view> needles) {
  for (std::string_view needle : needles) {
    if (Contains(text, needle)) return true;
  }
  return false;
}

bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> needles) {
  return ContainsAny(text, std::span<const std::string_view>(needles.begin(), needles.size()));
}

std::string_view After(std::string_view text, std::string_view needle) {
  const size_t at = text.find(needle);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + needle.size());
}

std::string_view Before(std::string_view text, std::string_view needle) {
  return text.substr(0, text.find(needle));
}

std::string_view Between(std::string_view text, std::string_view open, std::string_view close) {
  const std::string_view rest = After(text, open);
  const size_t end = rest.find(close);
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

std::string_view TrimLeft(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view TrimRight(std::string_view text) {
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view Trim(std::string_view text) {
  return TrimRight(TrimLeft(text));
}

std::optional<int64_t> LeadingInt(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<int64_t> IntAfter(std::string_view text, std::string_view needle) {
  const size_t at = text.find(needle);
  if (at == std::string_view::npos) return std::nullopt;
  return LeadingInt(TrimLeft(text.substr(at + needle.size())));
}

std::string_view NumberText(std::string_view text) {
  size_t size = !text.empty() && text.front() == '-' ? 1 : 0;
  while (size < text.size() && IsDigit(text[size])) ++size;
  return text.substr(0, size);
}

std::string_view LeadingWord(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t,;'\"()[]<>"));
}

std::optional<int64_t> LeadingBytes(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0) || value > 1e15) return std::nullopt;
  const std::string_view unit = TrimLeft(text.substr(static_cast<size_t>(end - text.data())));
  for (const UnitRow& row : kUnits) {
    if (!unit.starts_with(row.name)) continue;
    const double bytes = std::ldexp(value, row.shift);
    if (bytes > 9e18) return std::nullopt;
    return static_cast<int64_t>(std::llround(bytes));
  }
  return std::nullopt;
}

std::string_view Capped(std::string_view text, size_t cap) {
  if (text.size() <= cap) return text;
  size_t size = cap;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

std::string_view LastComponent(std::string_view dotted) {
  const size_t colons = dotted.rfind("::");
  if (colons != std::string_view::npos) dotted.remove_prefix(colons + 2);
  const size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

int32_t SignalNumber(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (const SignalRow& row : kSignals) {
    if (row.name == name) return row.number;
  }
  return 0;
}

std::string SignalName(int32_t signal) {
  for (const SignalRow& row : kSignals) {
    if (row.number == signal) return "SIG" + std::string(row.name);
  }
  return {};
}

int32_t SignalOfDescription(std::string_view description) {
  for (const SignalRow& row : kSignals) {
    if (description.starts_with(row.description)) return row.number;
  }
  return 0;
}

Incident MakeIncident(IncidentKind kind, const CleanLine& line, std::string_view shape) {
  Incident incident;
  incident.kind = kind;
  (line.local_rank ? incident.local_rank : incident.rank) = line.rank;
  incident.shape = shape;
  incident.offset = line.offset;
  incident.message = Capped(Trim(line.text), kMessageCap);
  incident.line = Capped(line.original.empty() ? line.text : line.original, kCitationCap);
  incident.t = line.t;
  return incident;
}

void AddField(Incident& incident, std::string_view key, std::string_view value) {
  if (!value.empty()) incident.fields.push_back({std::string(key), std::string(value)});
}

void AddField(Incident& incident, std::string_view key, int64_t value) {
  incident.fields.push_back({std::string(key), std::to_string(value)});
}

std::string_view FieldOf(const Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

void SetSignal(Incident& incident, int32_t signal) {
  incident.signal = signal;
  AddField(incident, "signal", SignalName(signal));
}

void AddQuote(Incident& incident, QuoteRole role, std::string_view line, int64_t offset) {
  if (line.empty() || incident.quotes.size() >= kMaxQuotes) return;
  const auto same = std::count_if(incident.quotes.begin(), incident.quotes.end(),
                                  [role](const Quote& quote) { return quote.role == role; });
  const bool text_line = role == QuoteRole::kMessage || role == QuoteRole::kBelow;
  if (text_line && static_cast<size_t>(same) >= kMaxMessageQuotes) return;
  incident.quotes.push_back({role, offset, std::string(Capped(line, kCitationCap))});
}

void AddQuote(Incident& incident, QuoteRole role, const CleanLine& line) {
  AddQuote(incident, role, line.original.empty() ? line.text : line.original, line.offset);
}

bool IsAdvice(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "consider passing", "consider setting", "might ",     "may be ",   "may have ",
      "may cause",        "may lead",         "may result", "could be ", "can lead to",
      "if you ",          "If you ",          "to avoid ",  "To avoid ", "try setting",
      "try to reduce",    "in case of",       "In case of", "prone to",  "risk of",
  };
  return ContainsAny(text, kWords);
}

bool IsRetry(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "Retrying", "retrying", "Retry ",   "retry ",   "will retry", "try again",
      "skipping", "Skipping", "ignoring", "Ignoring", "attempt ",   "Attempt ",
  };
  return ContainsAny(text, kWords);
}

int32_t CrashOfExitCode(int32_t code) {
  constexpr int32_t kSignalled = 128, kCrashes[] = {4, 6, 7, 8, 9, 11};
  const bool crash =
      std::find(std::begin(kCrashes), std::end(kCrashes), code - kSignalled) != std::end(kCrashes);
  return crash ? code - kSignalled : 0;
}

}  // namespace rankscope::logs
