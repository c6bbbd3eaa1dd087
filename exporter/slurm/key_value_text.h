// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One record a line, as `scontrol -o` prints them: "JobId=7 JobName=my job UserId=alice(1000) ...".
// Values hold blanks and '=', and are not quoted: a value ends where the next known name begins.
// For text_reader.cc. Pure; any bytes; any thread.
//
//   JobId=7 JobName=<owner's words> UserId=... JobState=... ... Command=<words> WorkDir=<words> ...
//   '----------------------------- facts ----------------------''------------ texts ------------'
//
// The two zones make most imitations harmless: behind the first text no fact begins, and a fact
// that stands twice (one is then a part of the name) leaves the record unreadable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

enum class Zone : uint8_t {
  kFact,  // one word: what follows it is a name that is not known yet
  kName,  // a fact of several words
  kPart,  // a fact that is said for each of several nodes
  kText,
  kEither,  // no one's words, and not at the same place in every version
};

template <class Record>
struct Key {
  std::string_view name;
  Zone zone;
  void (*set)(std::string_view value, Record& record);  // nullptr: not kept
};

// The values of one record, in the order of its keys' table.
class KeyValues {
 public:
  explicit KeyValues(size_t keys) : values_(keys), counts_(keys) {}

  void Clear() {
    std::fill(values_.begin(), values_.end(), std::string_view());
    std::fill(counts_.begin(), counts_.end(), uint8_t{0});
  }
  void Add(size_t key, std::string_view value) {
    values_[key] = value;
    if (counts_[key] < 2) ++counts_[key];
  }
  std::string_view value(size_t key) const { return values_[key]; }
  bool once(size_t key) const { return counts_[key] == 1; }
  bool twice(size_t key) const { return counts_[key] > 1; }

 private:
  std::vector<std::string_view> values_;
  std::vector<uint8_t> counts_;
};

// Cuts a text into the texts of records. One begins with the line that begins with `first`, if the
// one before has all it needs; other lines belong to the one before, whose name holds a newline.
class RecordCutter {
 public:
  // `needed` stand in every record, each behind a blank: " JobState=".
  RecordCutter(std::string_view text, std::string_view first, std::string_view needed_fact,
               std::string_view needed_text)
      : text_(text), first_(first), fact_(needed_fact), end_(needed_text) {}

  // Empty at the end.
  std::string_view Next();
  // Whether the last one has all it needs.
  bool whole() const { return has_fact_ && has_text_; }

 private:
  std::string_view text_, first_, fact_, end_;
  size_t at_ = 0;
  bool has_fact_ = false, has_text_ = false;
};

// The index of the key of this name; keys.size() if there is none.
template <class Record>
size_t FindKey(std::span<const Key<Record>> keys, std::string_view name) {
  const auto at = std::lower_bound(
      keys.begin(), keys.end(), name,
      [](const Key<Record>& key, std::string_view wanted) { return key.name < wanted; });
  return at != keys.end() && at->name == name ? static_cast<size_t>(at - keys.begin())
                                              : keys.size();
}

template <class Record>
void ReadKeyValues(std::string_view text, std::span<const Key<Record>> keys, KeyValues& values) {
  values.Clear();
  size_t key = keys.size();
  size_t begin = 0;  // of its value
  bool texts = false;
  const auto close = [&](size_t end) {
    if (key == keys.size()) return;
    while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\n')) --end;
    const std::string_view value = text.substr(begin, end - begin);
    values.Add(key, keys[key].zone == Zone::kFact ? value.substr(0, value.find(' ')) : value);
  };
  for (size_t word = 0; word < text.size();) {
    size_t end = word;
    while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
    const size_t sign = text.substr(word, end - word).find('=');
    if (sign != std::string_view::npos && sign > 0) {
      const size_t found = FindKey(keys, text.substr(word, sign));
      const Zone zone = found != keys.size() ? keys[found].zone : Zone::kPart;
      if (found != keys.size() && (!texts || zone == Zone::kText || zone == Zone::kEither)) {
        close(word);
        key = found;
        begin = word + sign + 1;
        texts = texts || zone == Zone::kText;
      }
    }
    word = end + 1;
  }
  close(text.size());
}

// Sets what is said once. False: a fact stands twice.
template <class Record>
bool SetFields(std::span<const Key<Record>> keys, const KeyValues& values, Record& record) {
  for (size_t i = 0; i < keys.size(); ++i) {
    const Zone zone = keys[i].zone;
    if (values.twice(i) && (zone == Zone::kFact || zone == Zone::kName)) return false;
    if (keys[i].set != nullptr && values.once(i)) keys[i].set(values.value(i), record);
  }
  return true;
}

}  // namespace rankscope::exporter::slurm
