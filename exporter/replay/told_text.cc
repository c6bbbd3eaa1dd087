// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/told_text.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <variant>
#include <vector>

#include "detectors/logs/reader.h"
#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/number.h"

namespace rankscope::replay {
namespace {

using logs::IsDigit;
using logs::IsLetter;

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.starts_with(word); });
}

// "- fixed", "* fixed", "3. look at": an item of a list. A program's own numbers go on with digits.
bool IsItem(std::string_view line) {
  line = logs::LeftTrimmed(line);
  if (StartsWithAny(line, {"- ", "* ", "\xe2\x80\xa2 "})) return true;
  size_t digits = 0;
  while (digits < line.size() && IsDigit(line[digits])) ++digits;
  if (digits == 0 || digits > 2 || digits + 2 >= line.size()) return false;
  return (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ' &&
         !IsDigit(line[digits + 2]);
}

// "10:42:07": people who list what has changed write no such time.
bool HasClock(std::string_view line) {
  for (size_t i = line.find(':'); i != std::string_view::npos; i = line.find(':', i + 1)) {
    if (i >= 2 && i + 3 < line.size() && IsDigit(line[i - 1]) && IsDigit(line[i - 2]) &&
        IsDigit(line[i + 1]) && IsDigit(line[i + 2]) && line[i + 3] == ':')
      return true;
  }
  return false;
}

// "*** JOB <id> ON <node>": where a program prints a number or a name.
bool HasPlaceholder(std::string_view line) {
  constexpr std::string_view kNames[] = {"id",   "jobid", "job_id", "node", "nodename", "host",
                                         "rank", "time",  "date",   "pid",  "hostname", "n",
                                         "gpu",  "size",  "number", "name", "path",     "file"};
  for (size_t i = line.find('<'); i != std::string_view::npos; i = line.find('<', i + 1)) {
    const std::string_view word = line.substr(i + 1, line.find('>', i) - i - 1);
    if (line.find('>', i) != std::string_view::npos &&
        std::find(std::begin(kNames), std::end(kNames), word) != std::end(kNames))
      return true;
  }
  return false;
}

// What a file of source code begins with.
bool BeginsSource(std::string_view line) {
  return StartsWithAny(line, {"import ", "from ", "def ", "class ", "async def ", "@", "\"\"\"",
                              "#!", "#include", "//", "/*", "package ", "using ", "namespace "});
}

// In a comment, or between quotes that do not hold the whole line.
bool IsInSource(std::string_view line, std::string_view words) {
  constexpr size_t kWords = 16;  // enough to find them by
  line = logs::Trimmed(line);
  if (StartsWithAny(line, {"#", "//", "*", "/*"})) return true;
  // Of some errors the whole line is kept, or none of its words: then its quotes hold the error,
  // unless an error stands before them ("KeyError: 'mask'").
  constexpr std::string_view kQuotes = "\"'`";
  size_t at = words.empty() ? 0 : line.find(words.substr(0, kWords));
  if (at == 0) at = line.find_first_of(kQuotes);
  if (at == std::string_view::npos || line.substr(0, at).find(": ") != std::string_view::npos)
    return false;
  if (kQuotes.find(line[at]) != std::string_view::npos) ++at;
  for (const char mark : {'"', '\'', '`'}) {
    const std::string_view before = line.substr(0, at), after = line.substr(at);
    if (std::count(before.begin(), before.end(), mark) % 2 == 1 &&
        after.find(mark) != std::string_view::npos)
      return true;
  }
  return false;
}

// Where a line stands.
struct Place {
  int64_t offset = 0;
  std::string_view text;
  bool item = false;        // of a list, or below one and indented
  bool introduced = false;  // in a block below a line that ends in "::"
};

// The lines of a text, and what they are.
class Layout {
 public:
  explicit Layout(std::string_view text) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      Add(static_cast<int64_t>(begin), text.substr(begin, end - begin));
      begin = end + 1;
    }
  }

  // Whether anything may be told at all.
  bool any() const { return source_ || introduces_ || placeholders_ || items_ >= kList; }

  bool IsTold(const logs::Incident& incident) const {
    const auto at =
        std::lower_bound(places_.begin(), places_.end(), incident.offset,
                         [](const Place& place, int64_t offset) { return place.offset < offset; });
    if (at == places_.end() || at->offset != incident.offset || incident.shape == "traceback")
      return false;
    const Place& place = *at;
    if (place.introduced || HasPlaceholder(place.text)) return true;
    if (place.item && items_ >= kList && !HasClock(place.text)) return true;
    return source_ && IsInSource(place.text, incident.message);
  }

 private:
  static constexpr int kList = 2;  // items: one alone may be a program's own mark

  void Add(int64_t offset, std::string_view line) {
    const std::string_view words = logs::Trimmed(line);
    if (words.empty()) return;
    if (places_.empty()) source_ = BeginsSource(line);
    const bool indented = logs::IsBlank(line.front());
    const bool begins = IsItem(line);
    items_ += begins ? 1 : 0;
    item_ = begins || (item_ && indented);
    introduced_ = introduced_ && indented;
    places_.push_back({offset, line, item_, introduced_});
    if (!indented && words.ends_with("::")) introduced_ = introduces_ = true;
    placeholders_ |= HasPlaceholder(line);
  }

  std::vector<Place> places_;  // by offset
  int64_t items_ = 0;
  bool source_ = false;  // the first line is one of a program's source
  bool introduces_ = false;
  bool placeholders_ = false;
  bool item_ = false;
  bool introduced_ = false;
};

}  // namespace

bool TellsOfErrorsOnly(std::string_view text) {
  const Layout layout(text);
  if (!layout.any()) return false;
  bool told = false, printed = false;
  const auto take = [&](std::span<const logs::Record> records) {
    for (const logs::Record& record : records) {
      const auto* const incident = std::get_if<logs::Incident>(&record);
      if (incident != nullptr) (layout.IsTold(*incident) ? told : printed) = true;
      printed = printed || std::holds_alternative<logs::Progress>(record);
    }
  };
  logs::Reader reader;
  logs::LineAssembler assembler;
  const auto feed = [&](const logs::AssembledLine& line) {
    if (printed) return;
    LogLine fed;
    fed.text = line.text;
    fed.offset = line.offset;
    fed.end = line.end;
    take(reader.Feed(fed, Timestamp{}));
  };
  assembler.Feed(text, feed);
  assembler.Flush(LineEnd::kClosed, feed);
  take(reader.Flush());
  return told && !printed;
}

}  // namespace rankscope::replay
