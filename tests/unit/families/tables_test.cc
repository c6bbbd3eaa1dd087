// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The tables fit together: names, rows, remedies, questions, wording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "detectors/families/family.h"
#include "detectors/families/family_names.h"
#include "detectors/sentences/wording.h"
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
  int32_t last = 0;
  for (const FamilyRow& row : Families()) {
    EXPECT_GT(row.precedence, last) << row.code;
    last = row.precedence;
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
    EXPECT_TRUE(!out.by.empty() || out.needs != proto::STORE_UNSPECIFIED) << row.code;
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
    EXPECT_FALSE(row.implies.empty()) << row.code << " " << row.sub;
    EXPECT_THAT(kRemedies, ::testing::Contains(row.remedy)) << row.code << " " << row.sub;
  }
  for (const FamilyRow& row : Families()) {
    if (row.evaluate == kNeverRaised) continue;
    EXPECT_TRUE(seen.contains({row.code, "*"})) << row.code;
  }
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
    const engine::QuestionRow& row = engine::FindQuestion(question);
    EXPECT_EQ(row.question, question) << i;
    EXPECT_FALSE(row.text.empty()) << i;
    EXPECT_NE(row.needs, proto::STORE_UNSPECIFIED) << i;
    EXPECT_EQ(row.next_test.empty(), row.next_expects.empty()) << i;
  }
}

TEST(Wording, EveryKindOfEvidenceHasANameAndASentence) {
  for (int i = 0; i < features::kEvidenceKinds; ++i) {
    features::Evidence evidence;
    evidence.kind = static_cast<features::EvidenceKind>(i);
    evidence.observed = 3;
    evidence.expected = 4;
    evidence.ranks = {1};
    for (const char* key : {"type", "message", "sub", "signal", "error", "step", "records", "code",
                            "known", "name", "text", "host", "port"})
      evidence.captures.push_back({key, "x"});
    EXPECT_NE(engine::EvidenceSignal(evidence.kind), "unknown") << i;
    EXPECT_FALSE(engine::EvidenceText(evidence).empty()) << i;
    evidence.captures.clear();
    EXPECT_FALSE(engine::EvidenceText(evidence).empty()) << i << " must not need its captures";
  }
}

TEST(Wording, RankLists) {
  EXPECT_EQ(engine::RankList({}), "");
  EXPECT_EQ(engine::RankList({4}), "rank 4");
  EXPECT_EQ(engine::RankList({0, 1}), "ranks 0, 1");
  EXPECT_EQ(engine::RankList({0, 1, 2, 7, 9, 10, 11}), "ranks 0-2, 7, 9-11");
}

TEST(Wording, SignalNames) {
  EXPECT_EQ(engine::SignalName(9), "SIGKILL");
  EXPECT_EQ(engine::SignalName(0), "a signal");
  EXPECT_EQ(engine::SignalName(40), "signal 40");
}

TEST(Wording, SentencesWithoutTheirValuesAreLeftOut) {
  EXPECT_EQ(engine::Fill("{a} and {b}", {{"a", "1"}, {"b", "2"}}), "1 and 2");
  EXPECT_EQ(engine::Fill("{a} and {b}", {{"a", "1"}}), "");
  EXPECT_EQ(engine::Fill("{a}", {{"a", ""}}), "");
  EXPECT_EQ(engine::Fill("plain", {}), "plain");
}

}  // namespace
}  // namespace rankscope::families
