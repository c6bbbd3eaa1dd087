// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The tables fit together: names, rows, remedies, questions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "detectors/families/family.h"
#include "detectors/families/family_names.h"
#include "detectors/sentences/questions.h"
#include "detectors/sentences/render.h"
#include "detectors/verdict/remedies.h"

namespace rankscope::families {
namespace {

TEST(FamilyTable, EveryNameHasOneRowAndEveryRowAName) {
  std::map<std::string_view, int> rows, names;
  for (const FamilyRow& row : Families()) ++rows[row.code];
  for (const FamilyName& name : FamilyNames()) ++names[name.code];
  EXPECT_EQ(rows, names);
  for (const auto& [code, count] : rows) EXPECT_EQ(count, 1) << code;
}

TEST(FamilyTable, NamesAreUniqueLabelsAndSaySomething) {
  std::set<std::string_view> labels;
  for (const FamilyName& name : FamilyNames()) {
    EXPECT_TRUE(labels.insert(name.family).second) << name.family;
    EXPECT_EQ(name.family.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
    EXPECT_FALSE(name.what.empty()) << name.code;
    EXPECT_EQ(FindFamily(name.code).family, name.family);
  }
  EXPECT_TRUE(FindFamily("Z9").family.empty());
}

TEST(FamilyTable, IsInOrderOfPrecedenceAndEndsInTheOneThatAlwaysMatches) {
  bool incident = true;
  for (const FamilyRow& row : Families()) {
    EXPECT_TRUE(incident || !row.incident) << row.code << ": what explains the cause comes first";
    incident = row.incident;
    EXPECT_NE(row.evaluate, nullptr);
    EXPECT_NE(row.rule_out, nullptr);
  }
  EXPECT_EQ(Families().back().code, "U0");
  EXPECT_TRUE(Families().back().evaluate(features::JobFeatures()).matched);
}

TEST(FamilyTable, NobodyIsFoundInAnEmptyRun) {
  const features::JobFeatures nothing;
  for (const FamilyRow& row : Families()) {
    EXPECT_EQ(row.evaluate(nothing).matched, row.code == "U0") << row.code;
    const RuledOut out = row.rule_out(nothing);
    EXPECT_TRUE(out.by != Reason::kNone || out.needs != proto::STORE_UNSPECIFIED) << row.code;
  }
}

TEST(RemedyTable, EveryRowNamesARealFamilyAndEveryRaisableFamilyHasOne) {
  // As verdict.proto lists them.
  constexpr std::string_view kRemedies[] = {"fix_code",        "fix_config", "fix_data",
                                            "fix_environment", "rerun",      "drain_node",
                                            "escalate",        "wait",       "none"};
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const engine::RemedyRow& row : engine::Remedies()) {
    EXPECT_TRUE(row.code == "*" || !FindFamily(row.code).family.empty()) << row.code;
    EXPECT_TRUE(seen.insert({row.code, row.sub}).second) << row.code << " " << row.sub;
    EXPECT_FALSE(row.implies.text().empty()) << row.code << " " << row.sub;
    EXPECT_THAT(kRemedies, ::testing::Contains(row.remedy)) << row.code << " " << row.sub;
  }
  for (const FamilyRow& row : Families()) {
    EXPECT_TRUE(seen.contains({row.code, "*"})) << row.code;
  }
}

// A process that is gone can neither be looked at nor be continued.
TEST(RemedyTable, OnlyARunThatGoesOnIsToBeLookedAt) {
  FieldValues ended;
  ended.Set(FieldId::kWho, "rank 3")
      .Set(FieldId::kWhere, "the node")
      .Set(FieldId::kPid, int64_t{17});
  FieldValues running = ended;
  running.Set(FieldId::kRunning, "yes");
  int looked_at = 0;
  for (const engine::RemedyRow& row : engine::Remedies()) {
    const auto all = [&row](const FieldValues& values) {
      std::string text;
      for (const auto* list : {&row.immediate, &row.verify}) {
        list->ForEach([&](sentences::Template sentence) {
          text += sentences::Render(sentence, values) + "\n";
        });
      }
      return text;
    };
    using ::testing::ContainsRegex;
    using ::testing::Not;
    EXPECT_THAT(all(ended),
                Not(ContainsRegex("-?-p(id)? 17|/proc/17|ps -eLo|kill -CONT|(End|Stop) the run|"
                                  "(^|\n)Run py-spy")))
        << row.code << " " << row.sub;
    FieldValues of_unknown;  // its pid is not known
    of_unknown.Set(FieldId::kRunning, "yes").Set(FieldId::kWho, "a process");
    EXPECT_THAT(all(of_unknown), Not(::testing::HasSubstr("has ended"))) << row.code << row.sub;
    looked_at += all(running).find("py-spy") != std::string::npos;
  }
  EXPECT_GT(looked_at, 4);
}

TEST(RemedyTable, TheMostSpecificRowIsFound) {
  EXPECT_EQ(engine::FindRemedy("A2", "sigkill").sub, "sigkill");
  EXPECT_EQ(engine::FindRemedy("A2", "no such sub").sub, "*");
  EXPECT_EQ(engine::FindRemedy("A2", "no such sub").code, "A2");
  EXPECT_EQ(engine::FindRemedy("Z9", "").code, "*");
}

TEST(QuestionTable, EveryQuestionHasARow) {
  for (int i = 0; i < families::kQuestions; ++i) {
    const auto question = static_cast<Question>(i);
    const sentences::QuestionRow& row = sentences::FindQuestion(question);
    EXPECT_EQ(row.question, question) << i;
    EXPECT_FALSE(row.text.text().empty()) << i;
    EXPECT_NE(row.needs, proto::STORE_UNSPECIFIED) << i;
    EXPECT_EQ(row.next_test.text().empty(), row.next_expects.text().empty()) << i;
  }
}

}  // namespace
}  // namespace rankscope::families
