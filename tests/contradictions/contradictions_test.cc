// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The checker finds what is planted; recordings of real runs and generated jobs have nothing to
// find at any tick.
#include "tests/contradictions/contradictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "detectors/document/verdict_json.h"
#include "detectors/engine/engine.h"
#include "detectors/model/sink.h"
#include "detectors/recording/recording.h"
#include "tests/generator/faults.h"
#include "tests/generator/generator.h"

namespace rankscope::contradictions {
namespace {

using engine::Assertion;
using engine::BuiltVerdict;
using testing::HasSubstr;
using testing::IsEmpty;

// A verdict with evidence at a time, reasons and questions, each with one fact.
class Planted {
 public:
  Planted& Shows(const std::string& fact, int64_t begin_s = 0, int64_t end_s = 0) {
    proto::Evidence& evidence = *built_.document.add_shows();
    evidence.set_text("evidence");
    evidence.set_begin_ns(begin_s * 1'000'000'000);
    evidence.set_end_ns(end_s * 1'000'000'000);
    return Assert(Assertion::Of::kEvidence, built_.document.shows_size(), fact);
  }
  Planted& Reason(const std::string& fact) {
    built_.document.add_families()->set_code("A2");
    return Assert(Assertion::Of::kFamily, built_.document.families_size(), fact);
  }
  Planted& Asks(const std::string& fact) {
    built_.document.add_cannot_decide();
    return Assert(Assertion::Of::kQuestion, built_.document.cannot_decide_size(), fact);
  }
  proto::Verdict& document() { return built_.document; }
  std::vector<std::string> Found() const { return Contradictions(built_); }

 private:
  Planted& Assert(Assertion::Of of, int size, const std::string& fact) {
    built_.assertions.push_back({of, size - 1, fact});
    return *this;
  }
  BuiltVerdict built_;
};

TEST(Planted, AReasonThatEvidenceDenies) {
  const auto found = Planted()
                         .Shows("process.ended=signal of pid 1/5")
                         .Shows("process.signal=SIGTERM of pid 1/5")
                         .Reason("!process.ended=signal")
                         .Found();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0], HasSubstr("process.ended=signal of pid 1/5"));
  EXPECT_THAT(found[0], HasSubstr("A2: "));
}

TEST(Planted, TwoEndsOfOneProcess) {
  Planted two;
  two.Shows("process.signal=SIGTERM of rank 1").Shows("process.signal=SIGKILL of ranks 0-3");
  EXPECT_EQ(two.Found().size(), 1u);
  Planted apart;
  apart.Shows("process.signal=SIGTERM of rank 1").Shows("process.signal=SIGKILL of rank 2");
  EXPECT_THAT(apart.Found(), IsEmpty());
}

TEST(Planted, StatesContradictAtOneTimeOnly) {
  Planted before;
  before.Shows("node.state=DOWN of n1", 10, 20).Shows("node.state=IDLE of n1", 30, 40);
  EXPECT_THAT(before.Found(), IsEmpty());
  Planted during;
  during.Shows("node.state=DOWN of n1", 10, 20).Shows("node.state=IDLE of n1", 15, 40);
  EXPECT_EQ(during.Found().size(), 1u);
  Planted unknown;
  unknown.Shows("node.state=DOWN of n1").Shows("node.state=IDLE of n1", 15, 40);
  EXPECT_THAT(unknown.Found(), IsEmpty());
}

// A reason is of the time of the verdict.
TEST(Planted, AReasonSpeaksOfNow) {
  Planted now;
  now.Shows("gpu.runs=nothing of GPU-1", 10, 70).Reason("!gpu.runs=nothing");
  EXPECT_EQ(now.Found().size(), 1u);
  Planted earlier;
  earlier.Shows("gpu.runs=nothing of GPU-1", 10, 70).Shows("training.showed=record", 300, 300);
  EXPECT_THAT(earlier.Reason("!gpu.runs=nothing").Found(), IsEmpty());
}

TEST(Planted, AQuestionThatIsAnswered) {
  Planted asks;
  asks.Asks("!end.asked_by=known").Shows("scheduler.did=cancelled");
  EXPECT_THAT(asks.Found(), IsEmpty());
  asks.document().mutable_disposition()->set_by("alice");
  asks.document().mutable_disposition()->set_kind("cancelled");
  EXPECT_EQ(asks.Found().size(), 1u);
}

TEST(Planted, TheEndAndTheDocumentDisagree) {
  Planted planted;
  planted.Reason("!scheduler.did=time_limit")
      .Shows("command.exit_code=1")
      .Reason("job.running=yes");
  planted.document().mutable_disposition()->set_kind("time_limit");
  planted.document().set_exit_known(true);
  planted.document().set_exit_code(0);
  EXPECT_EQ(planted.Found().size(), 3u);
  planted.document().mutable_triage()->set_running(true);
  planted.document().set_exit_code(1);
  planted.document().mutable_disposition()->set_kind("failed");
  EXPECT_THAT(planted.Found(), IsEmpty());
}

// Judges as the daemon does, and notes what contradicts itself, each once.
class Checker final : public Sink {
 public:
  void Accept(const Observation& observation) override {
    if (!engine_) engine_.emplace(engine::Config{}, observation.node);
    last_ = observation.t;
    if (std::holds_alternative<Tick>(observation.kind)) return JudgeAt(observation.t);
    engine_->Accept(observation);
  }
  std::set<std::string> Finish() {
    constexpr int kMoreTicks = 20;  // past the longest wait for a last word
    for (int i = 0; engine_ && i < kMoreTicks; ++i) JudgeAt(last_ = last_ + Seconds(1));
    return std::move(found_);
  }

 private:
  void JudgeAt(Timestamp now) {
    engine_->Tick(now);
    for (const engine::JobView& job : engine_->Jobs()) {
      if (job.assertions == nullptr) continue;
      for (const std::string& each : Contradictions(BuiltVerdict{*job.verdict, *job.assertions}))
        found_.insert(job.verdict->code() + ": " + each);
    }
  }

  std::optional<engine::Engine> engine_;
  Timestamp last_;
  std::set<std::string> found_;
};

class Recorded : public testing::TestWithParam<std::string> {};

TEST_P(Recorded, ContradictsItselfNowhere) {
  std::ifstream file(GetParam(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Checker checker;
  recording::Decoder decoder;
  decoder.Feed(
      bytes, [](const recording::Header&) {},
      [&checker](const Observation& observation) { checker.Accept(observation); });
  ASSERT_FALSE(decoder.failed()) << decoder.error();
  EXPECT_THAT(checker.Finish(), IsEmpty());
}

std::vector<std::string> Recordings() {
  std::vector<std::string> paths;
  const std::filesystem::path folder =
      std::filesystem::path(RANKSCOPE_SOURCE_DIR) / "tests/fixtures/recordings";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back((entry.path() / "recording/bulk-00000001.rec").string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(All, Recorded, testing::ValuesIn(Recordings()), [](const auto& of) {
  return std::filesystem::path(of.param).parent_path().parent_path().filename().string();
});

std::vector<std::string> Families() {
  std::vector<std::string> codes = {"healthy"};
  for (const generator::FaultRow& row : generator::Faults()) codes.emplace_back(row.code);
  return codes;
}

// Of each family as many that there are two hundred in all, and at night two thousand.
uint64_t JobsOfEach() {
  const char* const wanted = std::getenv("RANKSCOPE_GENERATED_JOBS");
  const uint64_t jobs = wanted == nullptr ? 200 : std::strtoull(wanted, nullptr, 10);
  const uint64_t families = Families().size();
  return (jobs + families - 1) / families;
}

class Generated : public testing::TestWithParam<std::string> {};

TEST_P(Generated, ContradictsItselfNowhere) {
  for (uint64_t seed = 1; seed <= JobsOfEach(); ++seed) {
    generator::Options options;
    options.seed = seed;
    options.family = GetParam();
    options.ranks = 16;
    options.minutes = 6;
    Checker checker;
    generator::Generate(options, checker);
    EXPECT_THAT(checker.Finish(), IsEmpty()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Generated, testing::ValuesIn(Families()),
                         [](const auto& of) { return of.param; });

}  // namespace
}  // namespace rankscope::contradictions
