// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What sentences assert for a machine: how a row's facts become those of an observation, and which
// of them cannot both be true. What is no fact does not compile.
#include "detectors/sentences/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/sentences/evidence_text.h"
#include "detectors/sentences/reasons.h"

namespace rankscope::sentences {
namespace {

using features::Evidence;
using features::EvidenceKind;
using testing::ElementsAre;
using testing::IsEmpty;

Evidence Death(int32_t pid, int32_t signal) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kSignalDeath;
  evidence.observed = signal;
  evidence.process = {pid, 5};
  return evidence;
}

std::vector<std::string> FactsOf(const Evidence& evidence) {
  return Facts(FindRow(evidence).facts, evidence);
}

bool Contradict(std::string_view a, std::string_view b) {
  const auto of_a = ReadFact(a), of_b = ReadFact(b);
  EXPECT_TRUE(of_a && of_b) << a << ", " << b;
  const bool found = sentences::Contradict(*of_a, *of_b);
  EXPECT_EQ(found, sentences::Contradict(*of_b, *of_a)) << a << ", " << b;
  return found;
}

TEST(Facts, AreOfTheProcessElseOfItsRank) {
  Evidence evidence = Death(17, 15);
  EXPECT_THAT(FactsOf(evidence), ElementsAre("process.ended=signal of pid 17/5",
                                             "process.signal=SIGTERM of pid 17/5"));
  evidence.process = {};
  evidence.ranks = {0, 1, 2, 7};
  EXPECT_THAT(FactsOf(evidence), ElementsAre("process.ended=signal of ranks 0-2, 7",
                                             "process.signal=SIGTERM of ranks 0-2, 7"));
  evidence.ranks.clear();
  evidence.observed.reset();
  EXPECT_THAT(FactsOf(evidence), ElementsAre("process.ended=signal"))
      << "a value that is not known is not asserted";
}

TEST(Facts, AGpuIsOneByItsIdentifier) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kGpuLost;
  evidence.values = {{FieldId::kGpu, int64_t{3}}};
  EXPECT_THAT(FactsOf(evidence), ElementsAre("gpu.had=lost of 3"));
  evidence.values.Set(FieldId::kGpuUuid, "GPU-1");
  EXPECT_THAT(FactsOf(evidence), ElementsAre("gpu.had=lost of GPU-1"));
}

TEST(Facts, OnlyWhatTheConditionAsksForIsAsserted) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kGpuActivity;
  evidence.observed = 0.5;
  EXPECT_THAT(FactsOf(evidence), IsEmpty());
  evidence.observed = 0.01;
  EXPECT_THAT(FactsOf(evidence), ElementsAre("gpu.runs=nothing"));
  using families::Reason;
  EXPECT_THAT(ReasonFacts(Reason::kNoSuchText, {{FieldId::kWhat, "storage"}}),
              ElementsAre("!process.got=storage_error"));
  EXPECT_THAT(ReasonFacts(Reason::kNoSuchText, {{FieldId::kWhat, "transport"}}), IsEmpty());
  EXPECT_THAT(ReasonFacts(Reason::kOtherEvent, {}), IsEmpty());
}

// A value that somebody else chose is one word: it cannot make a fact of its own.
TEST(Facts, AValueMakesNoFacts) {
  Evidence evidence;
  evidence.kind = EvidenceKind::kNodeState;
  evidence.values = {{FieldId::kValue, "x process.ended=signal of\nrank 1"},
                     {FieldId::kNode, "n1"}};
  EXPECT_THAT(FactsOf(evidence), ElementsAre("node.state=x_process.ended=signal_of_rank_1 of n1"));
  evidence.values = {{FieldId::kValue, std::string(1000, 'a')}};
  ASSERT_EQ(FactsOf(evidence).size(), 1u);
  EXPECT_LT(FactsOf(evidence)[0].size(), 100u);
}

TEST(Facts, AreReadAsTheyWereWritten) {
  const auto fact = ReadFact("!process.signal=SIGTERM of pid 17/5");
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->predicate->name, "process.signal");
  EXPECT_EQ(fact->value, "SIGTERM");
  EXPECT_EQ(fact->subject, "pid 17/5");
  EXPECT_TRUE(fact->denied);
  for (const char* const text :
       {"", "!", "process.ended", "process.ended=", "no.such=x", "=", "none"})
    EXPECT_FALSE(ReadFact(text)) << text;
}

TEST(Facts, OneSubjectHasOneValue) {
  EXPECT_TRUE(Contradict("process.signal=SIGTERM of rank 1", "process.signal=SIGKILL of rank 1"));
  EXPECT_TRUE(Contradict("process.ended=exit of ranks 0-3", "process.ended=signal of ranks 2, 9"));
  EXPECT_FALSE(Contradict("process.ended=exit of ranks 0-3", "process.ended=signal of ranks 4-9"));
  EXPECT_FALSE(Contradict("process.signal=SIGTERM of rank 1", "process.signal=SIGTERM of rank 1"));
  EXPECT_FALSE(
      Contradict("process.signal=SIGTERM of pid 1/5", "process.signal=SIGKILL of pid 2/5"));
  EXPECT_FALSE(Contradict("process.signal=SIGTERM", "process.signal=SIGKILL")) << "of somebody";
  EXPECT_FALSE(Contradict("process.signal=SIGTERM of rank 1", "process.ended=exit of rank 1"));
  EXPECT_TRUE(Contradict("command.exit_code=0", "command.exit_code=1")) << "there is one command";
  EXPECT_FALSE(Contradict("scheduler.did=requeue", "scheduler.did=preemption")) << "events";
}

TEST(Facts, ADenialOfNobodyInParticularIsOneOfAll) {
  EXPECT_TRUE(Contradict("!process.ended=signal", "process.ended=signal of rank 1"));
  EXPECT_TRUE(Contradict("!process.ended=signal", "process.ended=signal"));
  EXPECT_TRUE(Contradict("!process.signal_from=*", "process.signal_from=kernel of pid 1/5"));
  EXPECT_TRUE(Contradict("!scheduler.did=cancelled", "scheduler.did=cancelled"));
  EXPECT_FALSE(Contradict("!process.ended=signal", "process.ended=exit of rank 1"));
  EXPECT_FALSE(Contradict("!process.ended=signal", "!process.ended=signal"));
  EXPECT_TRUE(Contradict("!gpu.counted=ecc of GPU-1", "gpu.counted=ecc of GPU-1"));
  EXPECT_FALSE(Contradict("!gpu.counted=ecc of GPU-1", "gpu.counted=ecc of GPU-2"));
  EXPECT_FALSE(Contradict("!gpu.counted=ecc of GPU-1", "gpu.counted=ecc")) << "of some GPU";
}

// A predicate that only one row uses can contradict nothing.
TEST(Facts, EveryPredicateIsUsed) {
  const auto uses = [](const FactList& facts, std::string_view name) {
    return facts.text().text().find(name) != std::string_view::npos;
  };
  for (const PredicateRow& predicate : kPredicates) {
    const std::string name = std::string(predicate.name) + "=";
    bool used = false;
    for (const EvidenceRow& row : EvidenceRows()) used = used || uses(row.facts, name);
    for (const ReasonRow& row : ReasonRows()) used = used || uses(row.facts, name);
    EXPECT_TRUE(used) << name;
  }
}

}  // namespace
}  // namespace rankscope::sentences
