// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the rows of the tables assert, for machines: a sentence is for people, and its facts say
// what must not be said beside it. A row of evidence.inc, reasons.inc or questions.inc lists its
// facts with a space between them, in the language of the templates:
//
//   process.ended=signal process.signal={observed:signal}     two facts, one with a value of the
//   row !process.ended=signal                                     nobody was seen to end so
//   [?what=storage:!process.got=storage_error]                only where the condition holds
//   !process.signal_from=*                                    no value is known
//   none                                                      the sentence asserts nothing
//
// A predicate is a row of predicates.inc. The subject is not written: it is the process, rank, GPU
// or node that the observation is of. A list with an unknown predicate or value does not compile.
// Pure; any thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/fields.h"
#include "detectors/sentences/template.h"

namespace rankscope::sentences {

enum class Lasts : uint8_t { kOnce, kWhile, kEvent };

struct PredicateRow {
  std::string_view name;
  Lasts lasts;
  std::string_view values;
};
inline constexpr std::array kPredicates = {
#define PREDICATE(name, lasts, values) PredicateRow{name, Lasts::lasts, values},
#include "detectors/sentences/predicates.inc"
#undef PREDICATE
};

// Its place in kPredicates; their number where there is no such predicate. A place and no pointer:
// g++ 12 with -fsanitize=undefined takes no comparison with nullptr for a constant.
constexpr size_t PlaceOfPredicate(std::string_view name) {
  size_t place = 0;
  while (place < kPredicates.size() && kPredicates[place].name != name) ++place;
  return place;
}

// Whether a list of words, with spaces between them, has this one.
constexpr bool HasWord(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t space = words.find(' ');
    if (words.substr(0, space) == word) return true;
    if (space == std::string_view::npos) break;
    words.remove_prefix(space + 1);
  }
  return false;
}

// Reads every alternative of a list of facts.
struct FactChecker {
  static constexpr bool kEvery = true;
  static constexpr char kValue = '{';  // stands for a value of the row

  constexpr void Literal(std::string_view text) {
    for (const char c : text) {
      if (c == ' ') {
        Flush();
      } else {
        Push(c);
      }
    }
  }
  constexpr bool Value(const Placeholder&) {
    Push(kValue);
    return true;
  }
  constexpr bool Holds(std::string_view) { return true; }
  constexpr int Begin() {
    Flush();
    return 0;
  }
  constexpr void Undo(int) {}

  constexpr void Push(char c) {
    if (size == fact.size()) TemplateIsWrong("a fact is too long");
    fact[size++] = c;
  }
  constexpr void Flush() {
    std::string_view text(fact.data(), size);
    size = 0;
    if (text.empty()) return;
    const bool denied = text.front() == '!';
    if (denied) text.remove_prefix(1);
    const size_t equals = text.find('=');
    const size_t place = PlaceOfPredicate(text.substr(0, equals));
    if (place == kPredicates.size()) TemplateIsWrong("there is no such predicate");
    if (equals == std::string_view::npos) TemplateIsWrong("a fact has no value");
    const std::string_view value = text.substr(equals + 1);
    const std::string_view values = kPredicates[place].values;
    const bool known = value == std::string_view(&kValue, 1) || values == "*" ||
                       HasWord(values, value) || (denied && value == "*");
    if (!known) TemplateIsWrong("the predicate has no such value");
  }

  std::array<char, 96> fact{};
  size_t size = 0;
};

class FactList {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a table is written as its text
  consteval FactList(const char* text) : text_(text) {
    if (text_.text() == kNone) return;
    if (text_.text().empty()) TemplateIsWrong("a row that asserts nothing says none");
    FactChecker checker;
    Walk(text_.text(), checker, false);
    checker.Flush();
  }
  constexpr const Template& text() const { return text_; }
  constexpr bool none() const { return text_.text() == kNone; }

 private:
  static constexpr std::string_view kNone = "none";

  Template text_;
};

struct Fact {
  const PredicateRow* predicate = nullptr;
  std::string value;
  std::string subject;  // "rank 3", "pid 17"; empty: of the job, of somebody, or denied of all
  bool denied = false;
};

// One fact each: "!process.ended=signal of rank 3".
std::vector<std::string> Facts(const FactList& list, const features::Evidence& evidence);
std::vector<std::string> Facts(const FactList& list, const FieldValues& values);

// And back; nothing where it is none.
std::optional<Fact> ReadFact(std::string_view text);

// Whether both cannot be true, at one time: a fact and its denial, or two values where there can be
// one only.
bool Contradict(const Fact& a, const Fact& b);

}  // namespace rankscope::sentences
