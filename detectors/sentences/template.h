// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The language of the templates, read by the compiler and by the renderer alike:
//
//   {field}            the value, printed by the type of its field (detectors/model/fields.inc)
//   {field:format}     printed so; the formats are listed in formats.inc
//   {field:one/many}   one of two words, by whether the value is one
//   {field:group}      the words for the value from a group of words.inc
//   [text]             left out when a value in it is absent
//   [text|text]        the first of which no value is absent
//   [?condition:text]  and of which the condition holds
//
// A condition is a list of terms that all must hold, with ',' between them: `field` (is there),
// `!field`, `field=value`, `field=begin*`, `field!=value`, `field!=begin*`, `field<number`,
// `field>=number`. A template with an unknown name, an unknown format or an unbalanced bracket does
// not compile.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "detectors/model/fields.h"

namespace rankscope::sentences {

enum class Format : uint8_t {
  kPlain,   // by the field's type
  kEither,  // one/many
  kWords,   // of words.inc
#define FORMAT(id, name, what) id,
#include "detectors/sentences/formats.inc"
#undef FORMAT
};

struct FormatRow {
  Format format;
  std::string_view name;
};
inline constexpr std::array kFormats = {
#define FORMAT(id, name, what) FormatRow{Format::id, name},
#include "detectors/sentences/formats.inc"
#undef FORMAT
};

struct WordsRow {
  std::string_view group, value, words;
};
inline constexpr std::array kWords = {
#define WORDS(group, value, words) WordsRow{group, value, words},
#include "detectors/sentences/words.inc"
#undef WORDS
};

constexpr bool IsWordsGroup(std::string_view name) {
  for (const WordsRow& row : kWords) {
    if (row.group == name) return true;
  }
  return false;
}

// `{field:format}` without its braces.
struct Placeholder {
  FieldId field{};
  Format format = Format::kPlain;
  std::string_view argument;  // "one/many", the group of words
};

// Not constexpr: who calls it while the compiler evaluates has a template that is wrong.
inline void TemplateIsWrong(const char*) {}

constexpr Placeholder ReadPlaceholder(std::string_view text) {
  Placeholder read;
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (const auto field = FindField(name)) {
    read.field = *field;
  } else {
    TemplateIsWrong("there is no such field");
  }
  if (colon == std::string_view::npos) return read;
  read.argument = text.substr(colon + 1);
  if (read.argument.find('/') != std::string_view::npos) {
    read.format = Format::kEither;
    return read;
  }
  for (const FormatRow& row : kFormats) {
    if (row.name != read.argument) continue;
    read.format = row.format;
    return read;
  }
  read.format = Format::kWords;
  if (!IsWordsGroup(read.argument)) TemplateIsWrong("there is no such format");
  return read;
}

enum class Test : uint8_t {
  kIsThere,
  kIsNot,
  kEquals,
  kBegins,
  kDiffers,
  kBeginsNot,
  kBelow,
  kAtLeast
};

struct Term {
  FieldId field{};
  Test test = Test::kIsThere;
  std::string_view value;
};

constexpr Term ReadTerm(std::string_view text) {
  Term term;
  size_t name = text.find_first_of("=!<>", 1);
  if (name == std::string_view::npos) name = text.size();
  std::string_view rest = text.substr(name);
  std::string_view field = text.substr(0, name);
  if (field.starts_with('!')) {
    field.remove_prefix(1);
    term.test = Test::kIsNot;
    if (!rest.empty()) TemplateIsWrong("a term asks for one thing");
  } else if (rest.starts_with("!=")) {
    term.test = rest.ends_with('*') ? Test::kBeginsNot : Test::kDiffers;
    term.value = rest.substr(2);
    if (term.test == Test::kBeginsNot) term.value.remove_suffix(1);
  } else if (rest.starts_with(">=")) {
    term.test = Test::kAtLeast;
    term.value = rest.substr(2);
  } else if (rest.starts_with('<')) {
    term.test = Test::kBelow;
    term.value = rest.substr(1);
  } else if (rest.starts_with('=')) {
    term.test = rest.ends_with('*') ? Test::kBegins : Test::kEquals;
    term.value = rest.substr(1);
    if (term.test == Test::kBegins) term.value.remove_suffix(1);
  } else if (!rest.empty()) {
    TemplateIsWrong("there is no such test");
  }
  if (const auto found = FindField(field)) {
    term.field = *found;
  } else {
    TemplateIsWrong("there is no such field in a condition");
  }
  return term;
}

// Calls `each` with every term of a condition until one is false.
template <class Each>
constexpr bool EachTerm(std::string_view condition, Each&& each) {
  while (!condition.empty()) {
    const size_t comma = condition.find(',');
    if (!each(ReadTerm(condition.substr(0, comma)))) return false;
    if (comma == std::string_view::npos) break;
    condition.remove_prefix(comma + 1);
  }
  return true;
}

// Where an alternative ends: at the '|' or ']' that is its own.
constexpr size_t EndOfAlternative(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if ((text[i] == ']' || text[i] == '|') && depth == 0) return i;
    if (text[i] == ']') --depth;
  }
  TemplateIsWrong("a bracket is not closed");
  return text.size();
}

// Walks a text that holds no '|' and no ']' of its own. The walker's answers decide what is
// rendered: Literal(text), Value(placeholder), Holds(condition), and Begin() and Undo(mark) around
// an alternative; one with kEvery visits every alternative. False when a value was absent; `strict`
// stops there.
template <class Walker>
constexpr bool Walk(std::string_view text, Walker& walker, bool strict) {
  bool whole = true;
  while (!text.empty()) {
    const size_t next = text.find_first_of("{[");
    walker.Literal(text.substr(0, next));
    if (next == std::string_view::npos) break;
    if (text[next] == '{') {
      const size_t close = text.find('}', next);
      if (close == std::string_view::npos) {
        TemplateIsWrong("a brace is not closed");
        return false;
      }
      whole = walker.Value(ReadPlaceholder(text.substr(next + 1, close - next - 1))) && whole;
      if (strict && !whole) return false;
      text.remove_prefix(close + 1);
      continue;
    }
    text.remove_prefix(next + 1);
    for (bool chosen = false;;) {
      const size_t end = EndOfAlternative(text);
      std::string_view alternative = text.substr(0, end);
      bool holds = true;
      if (alternative.starts_with('?')) {
        const size_t colon = alternative.find(':');
        if (colon == std::string_view::npos) TemplateIsWrong("a condition has no ':'");
        holds = walker.Holds(alternative.substr(1, colon - 1));
        alternative.remove_prefix(colon == std::string_view::npos ? 0 : colon + 1);
      }
      if (holds && (Walker::kEvery || !chosen)) {
        const auto mark = walker.Begin();
        chosen = Walk(alternative, walker, true);
        if (!chosen) walker.Undo(mark);
      }
      if (end == text.size()) return false;
      const bool last = text[end] == ']';
      text.remove_prefix(end + 1);
      if (last) break;
    }
  }
  return whole;
}

// Visits every part of a template, whatever the values.
struct Checker {
  static constexpr bool kEvery = true;

  constexpr void Literal(std::string_view text) {
    if (text.find('}') != std::string_view::npos) TemplateIsWrong("a brace is not opened");
    if (text.find(']') != std::string_view::npos) TemplateIsWrong("a bracket is not opened");
  }
  constexpr bool Value(const Placeholder&) { return true; }
  constexpr bool Holds(std::string_view condition) {
    EachTerm(condition, [](const Term&) { return true; });
    return true;
  }
  constexpr int Begin() { return 0; }
  constexpr void Undo(int) {}
};

constexpr void CheckTemplate(std::string_view text) {
  Checker checker;
  Walk(text, checker, false);
}

class Template {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a table is written as its text
  consteval Template(const char* text) : text_(text) { CheckTemplate(text_); }
  constexpr std::string_view text() const { return text_; }

 private:
  friend class TemplateList;
  struct Checked {};
  constexpr Template(Checked, std::string_view text) : text_(text) {}

  std::string_view text_;
};

// Sentences, '|' between them, each of which stands or falls by itself.
class TemplateList {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval TemplateList(const char* text) : text_(text) { CheckTemplate(text_); }

  template <class Each>
  void ForEach(Each&& each) const {
    for (std::string_view rest = text_; !rest.empty();) {
      const size_t end = EndOfSentence(rest);
      each(Template(Template::Checked(), rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

 private:
  static constexpr size_t EndOfSentence(std::string_view text) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[') ++depth;
      if (text[i] == ']') --depth;
      if (text[i] == '|' && depth == 0) return i;
    }
    return text.size();
  }

  std::string_view text_;
};

class Condition {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval Condition(const char* text) : text_(text) {
    EachTerm(text_, [](const Term&) { return true; });
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace rankscope::sentences
