// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Every row of reasons.inc and of remarks.inc, rendered: reasons.txt and remarks.txt of
// tests/fixtures/sentences hold all that they can say, to be read.
#include "detectors/sentences/reasons.h"

#include <algorithm>
#include <vector>

#include "detectors/sentences/remarks.h"
#include "detectors/sentences/render.h"
#include "tests/unit/sentences/samples.h"

namespace rankscope::sentences {
namespace {

using families::Reason;

struct Row {
  std::string_view name;
  Template text;
};

constexpr Row kReasons[] = {
#define REASON(reason, text, facts) {#reason, text},
#include "detectors/sentences/reasons.inc"
#undef REASON
};

constexpr Row kRemarks[] = {
#define REMARK(remark, text) {#remark, text},
#include "detectors/sentences/remarks.inc"
#undef REMARK
};

// What a template asks of texts: the values that its conditions and its groups of words know.
struct ChoicesOf : FieldsOf {
  bool Value(const Placeholder& placeholder) {
    if (placeholder.format == Format::kWords) {
      for (const WordsRow& row : kWords) {
        if (row.group == placeholder.argument)
          choices.push_back({placeholder.field, std::string(row.value)});
      }
    }
    return FieldsOf::Value(placeholder);
  }
  bool Holds(std::string_view condition) {
    return EachTerm(condition, [this](const Term& term) {
      if (term.test == Test::kEquals) choices.push_back({term.field, std::string(term.value)});
      return true;
    });
  }

  std::vector<FieldValue> choices;
};

// In the order of the row: with each choice and without one, with each optional value alone, with
// all of them and with none.
std::vector<std::string> Sentences(const Row& row) {
  ChoicesOf of;
  Walk(row.text.text(), of, false);
  FieldValues least;
  for (const FieldId id : of.fields) {
    // Outside of brackets it cannot be left out.
    FieldValues without;
    for (const FieldId other : of.fields) {
      if (other != id) without.Set(Sample(other));
    }
    const bool chosen = std::any_of(of.choices.begin(), of.choices.end(),
                                    [id](const FieldValue& choice) { return choice.id == id; });
    if (!chosen && Render(row.text, without).empty()) least.Set(Sample(id));
  }
  std::vector<FieldValues> optional = {{}};
  FieldValues all;
  for (const FieldId id : of.fields) {
    if (least.Has(id)) continue;
    optional.push_back({Sample(id)});
    all.Set(Sample(id));
  }
  optional.push_back(all);
  std::vector<FieldValues> choices;
  for (const FieldValue& choice : of.choices) choices.push_back({choice});
  choices.emplace_back();
  std::vector<std::string> sentences;
  for (const FieldValues& choice : choices) {
    for (const FieldValues& more : optional) {
      FieldValues values = choice;
      values.Append(least);
      values.Append(more);
      std::string sentence = Render(row.text, values);
      if (sentence.empty()) continue;
      if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end())
        sentences.push_back(std::move(sentence));
    }
  }
  return sentences;
}

std::string Sentences(std::span<const Row> rows) {
  std::string text;
  for (const Row& row : rows) {
    const std::vector<std::string> sentences = Sentences(row);
    EXPECT_EQ(sentences.empty(), row.text.text().empty()) << row.name;
    for (const std::string& sentence : sentences)
      text += std::string(row.name) + ": " + sentence + "\n";
  }
  return text;
}

TEST(ReasonRows, EachSaysThis) {
  Expect("reasons.txt", Sentences(kReasons));
}

TEST(RemarkRows, EachSaysThis) {
  Expect("remarks.txt", Sentences(kRemarks));
}

TEST(ReasonRows, AnAbsentNumberLeavesNoHalfSentence) {
  EXPECT_EQ(ReasonText(Reason::kRecordsCome, {{FieldId::kSeconds, 3.0}}), "");
  EXPECT_EQ(ReasonText(Reason::kNone, {}), "");
}

}  // namespace
}  // namespace rankscope::sentences
