// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The grammar that hand-written training loops share: words, then a number that belongs to them
// ("Step [100/500]", "train loss: 0.5", "lr=1e-4", "dt 53.1ms"). Splits a line into such pairs and
// says what the well-known keys mean. Stateless, no allocation; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

struct Pair {
  std::string_view key;  // the words before the value; empty where a number stands alone
  Meaning meaning;
  bool percent = false;  // a '%' stands behind the value
  Number value;
  Number total;           // "/ N" or "of N" behind it
  std::string_view unit;  // the word glued to the value or next behind it: "ms", "s", "batches";
                          // "s" where the value is a clock ("1:02:03"), which is read as seconds
  size_t at = 0;          // where the key (or the lone number) begins in the text
};

// "step 10k", "step:1K": a position whose last digits are lost.
constexpr bool IsRounded(const Pair& index) {
  const std::string_view unit = index.unit.substr(0, index.unit.find('/'));
  return unit == "k" || unit == "K" || unit == "M";
}

class PairList {
 public:
  PairList() {}  // empty
  explicit PairList(std::string_view text);
  PairList(const PairList&) = delete;
  PairList& operator=(const PairList&) = delete;

  // Reads a line that is nothing but lower-case words of known meaning, each with its number: "step
  // 5 loss 1.8, lr: 0.05 dt 0.3s". The pairs are those that the constructor would find; false where
  // the line holds anything else. For an empty list.
  bool ReadPlain(std::string_view text);

  const Pair* begin() const { return pairs_; }
  const Pair* end() const { return pairs_ + size_; }
  size_t size() const { return size_; }
  const Pair& operator[](size_t i) const { return pairs_[i]; }

  // The most telling pair of this meaning; nullptr where there is none.
  const Pair* Find(Key key) const;
  const Pair* FindNamed(std::string_view name) const;

  // Words that belong to no number and say that this line is not about training: "eval:", "| test
  // |".
  bool speaks_of_evaluation() const { return evaluation_; }
  // Words that belong to no number at all.
  int stray_words() const { return stray_words_; }

 private:
  static constexpr size_t kMaxPairs = 48;  // the longest metric lines in use have about thirty

  // The words that wait for their number.
  struct OpenKey {
    size_t begin = 0;
    size_t end = 0;    // == begin: none
    size_t marks = 0;  // since it ended
    size_t blanks = 0;
    bool wrapped = false;  // the value stands in a bracket of its own: "tensor(2.5, ..."

    explicit operator bool() const { return begin != end; }
  };

  void Drop(std::string_view text, OpenKey& key);
  bool Name(std::string_view text, size_t& i, const OpenKey& key, Number& number, Pair& pair);
  void TakeNumber(std::string_view text, size_t& i, OpenKey& key, Number number);
  void TakeWord(std::string_view text, size_t& i, OpenKey& key);
  void Stray(std::string_view words);
  void TakeLastWord(Pair& pair);
  void Add(const Pair& pair);
  void Note(const Meaning& meaning, size_t at);

  union {  // only the first size_ are alive: most lines have five
    Pair pairs_[kMaxPairs];
  };
  size_t size_ = 0;
  static constexpr uint8_t kNone = 0xff;
  // The most telling pair of each meaning.
  std::array<uint8_t, kKeys> best_ = [] {
    std::array<uint8_t, kKeys> none{};
    none.fill(kNone);
    return none;
  }();
  int stray_words_ = 0;
  bool evaluation_ = false;
};

// Fills what the pairs say besides step and loss: grad norm, learning rate, epoch, times,
// throughput, what was consumed, rewards ...
void FillFromPairs(const PairList& pairs, Progress& progress);

}  // namespace rankscope::logs
