// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "detectors/recording/recording.h"
#include "tests/generator/faults.h"

namespace rankscope::generator {
namespace {

struct Counts {
  int64_t observations = 0, lines = 0, samples = 0, ticks = 0, starts = 0, exits = 0, gpu = 0;
  bool rises = true;
  bool failed = false;
  std::string error;
  Timestamp first, last;
};

Counts Count(
    const std::string& bytes,
    const std::function<void(const Observation&)>& each = [](const Observation&) {}) {
  Counts counts;
  recording::Decoder decoder;
  const auto header = [](const recording::Header&) {};
  const auto take = [&](const Observation& observation) {
    ++counts.observations;
    if (counts.first.ns == 0) counts.first = observation.t;
    if (observation.t < counts.last) counts.rises = false;
    counts.last = observation.t;
    counts.lines += std::holds_alternative<LogLine>(observation.kind);
    counts.ticks += std::holds_alternative<Tick>(observation.kind);
    counts.starts += std::holds_alternative<ProcessStart>(observation.kind);
    counts.exits += std::holds_alternative<ProcessExit>(observation.kind);
    if (const auto* const batch = std::get_if<SampleBatch>(&observation.kind)) {
      ++counts.samples;
      counts.gpu += batch->subject.kind == Subject::Kind::kGpu;
    }
    each(observation);
  };
  decoder.Feed(bytes, header, take);
  decoder.Finish(header, take);
  counts.failed = decoder.failed();
  counts.error = decoder.error();
  return counts;
}

Options Of(const std::string& family, uint64_t seed) {
  Options options;
  options.seed = seed;
  options.family = family;
  return options;
}

// Of this family, until one has what is asked for.
Options Seek(Options options, const std::function<bool(const Plan&)>& has) {
  while (!has(DrawPlan(options, Random(options.seed * 0x2545F4914F6CDD1Dull + 1).Fork(3)))) {
    ++options.seed;
  }
  return options;
}

TEST(Generator, TheSameSeedGivesTheSameBytes) {
  std::string first, second, other;
  Options options = Of("any", 7);
  options.minutes = 4;
  options.ranks = 4;
  const Truth truth = GenerateRecording(options, first);
  EXPECT_EQ(TruthJson(truth), TruthJson(GenerateRecording(options, second)));
  EXPECT_TRUE(first == second);
  options.seed = 8;
  GenerateRecording(options, other);
  EXPECT_FALSE(first == other);
}

class EveryFamily : public testing::TestWithParam<std::string> {};

TEST_P(EveryFamily, IsRecordedWithItsTruth) {
  for (const uint64_t seed : {11u, 12u}) {
    Options options = Of(GetParam(), seed);
    options.minutes = 5;
    std::string bytes;
    const Truth truth = GenerateRecording(options, bytes);
    const Counts counts = Count(bytes);
    EXPECT_FALSE(counts.failed) << counts.error;
    EXPECT_TRUE(counts.rises);
    EXPECT_EQ(truth.family, GetParam() == "healthy" ? "G1" : GetParam());
    EXPECT_EQ(truth.healthy, GetParam() == "healthy");
    EXPECT_FALSE(truth.disposition.empty());
    EXPECT_GE(truth.onset, 0);
    EXPECT_LE(truth.onset, truth.seconds) << TruthJson(truth);
    for (const int rank : truth.ranks) EXPECT_LT(rank, truth.world);
    EXPECT_EQ(truth.ranks.size(), truth.gpus.size());
    const double seconds = (counts.last - counts.first).seconds();
    EXPECT_NEAR(seconds, truth.seconds, 40);
    EXPECT_GE(counts.ticks, static_cast<int64_t>(0.5 * truth.seconds));
    EXPECT_GE(counts.starts, 2);
    if (GetParam() != "C3") {  // it may hang before its first word
      EXPECT_GT(counts.lines, 0);
    }
    EXPECT_GT(counts.gpu, static_cast<int64_t>(0.5 * truth.seconds));
    // At the sources' own rates: some kilobytes for each rank and second.
    const int ranks = std::min(truth.world, 8);
    EXPECT_LT(static_cast<double>(bytes.size()), 4000.0 * ranks * truth.seconds + 4e6);
  }
}

std::vector<std::string> Families() {
  std::vector<std::string> families = {"healthy"};
  for (const FaultRow& row : Faults()) families.emplace_back(row.code);
  return families;
}

INSTANTIATE_TEST_SUITE_P(All, EveryFamily, testing::ValuesIn(Families()),
                         [](const auto& of) { return of.param; });

TEST(Generator, AMissingStoreSaysNothing) {
  for (const std::string& store : StoreNames()) {
    Options options = Of("healthy", 21);
    options.minutes = 4;
    options.ranks = 2;
    options.without = {store};
    std::string bytes;
    const Truth truth = GenerateRecording(options, bytes);
    EXPECT_THAT(truth.stores, testing::Not(testing::Contains(store)));
    Counts seen;
    int calls = 0, facts = 0, kernel = 0;
    seen = Count(bytes, [&](const Observation& observation) {
      facts += std::holds_alternative<SchedulerFact>(observation.kind);
      kernel += std::holds_alternative<KernelEvent>(observation.kind);
      const auto* const batch = std::get_if<SampleBatch>(&observation.kind);
      if (batch == nullptr) return;
      for (const Sample& sample : batch->samples)
        calls += sample.signal == SignalId::kKernelLaunches;
    });
    if (store == "text") {
      EXPECT_EQ(seen.lines, 0);
    }
    if (store == "nvml") {
      EXPECT_EQ(seen.gpu, 0);
    }
    if (store == "ebpf") {
      EXPECT_EQ(calls, 0);
    }
    if (store == "slurm") {
      EXPECT_EQ(facts, 0);
    }
    if (store == "kernel") {
      EXPECT_EQ(kernel, 0);
    }
    EXPECT_GE(seen.starts, 3) << store;
  }
}

TEST(Generator, AnOutageIsToldAndNothingIsSeenInIt) {
  Options options = Of("healthy", 31);
  options.minutes = 12;
  options.ranks = 2;
  options.outage = true;
  options.plain = true;
  options = Seek(options, [](const Plan& plan) { return plan.slurm; });
  std::string bytes;
  GenerateRecording(options, bytes);
  Timestamp from, to;
  Count(bytes, [&](const Observation& observation) {
    const auto* const epoch = std::get_if<Epoch>(&observation.kind);
    if (epoch == nullptr || epoch->away_since.ns == 0) return;
    from = epoch->away_since;
    to = observation.t;
  });
  ASSERT_NE(to.ns, 0);
  EXPECT_GE((to - from).seconds(), 14);
  EXPECT_LE((to - from).seconds(), 301);
  int within = 0;
  Count(bytes, [&](const Observation& observation) {
    within += observation.t > from && observation.t < to;
  });
  EXPECT_EQ(within, 0);
}

TEST(Generator, ALateDaemonSeesProcessesThatWereThereBefore) {
  Options options = Of("healthy", 41);
  options.minutes = 8;
  options.ranks = 2;
  options.late = true;
  options.plain = true;
  options = Seek(options, [](const Plan& plan) { return plan.slurm; });
  std::string bytes;
  GenerateRecording(options, bytes);
  int preexisting = 0;
  const Counts counts = Count(bytes, [&](const Observation& observation) {
    const auto* const start = std::get_if<ProcessStart>(&observation.kind);
    preexisting += start != nullptr && start->preexisting;
  });
  EXPECT_EQ(preexisting, 3);
  EXPECT_LT((counts.last - counts.first).seconds(), 8 * 60 * 0.85 + 30);
}

// KillWait: what cannot end at SIGTERM ends half a minute later.
TEST(Generator, TheSchedulerKillsWhatDoesNotEnd) {
  int late = 0;
  for (uint64_t seed = 100; seed < 140; ++seed) {
    Options options = Of("C2", seed);
    options.ranks = 4;
    options.minutes = 6;
    std::string bytes;
    const Truth truth = GenerateRecording(options, bytes);
    if (truth.disposition != "cancelled" && truth.disposition != "time_limit") continue;
    Timestamp terminated, killed;
    Count(bytes, [&](const Observation& observation) {
      const auto* const sent = std::get_if<SignalSent>(&observation.kind);
      if (sent == nullptr || sent->sender_comm != "slurmstepd") return;
      (sent->signo == 15 ? terminated : killed) = observation.t;
    });
    if (killed.ns == 0) continue;
    EXPECT_NEAR((killed - terminated).seconds(), 30.8, 1);
    ++late;
  }
  EXPECT_GT(late, 0);
}

TEST(Generator, WiderRangesAreWider) {
  Random narrow(3), wide(3, 1.3);
  double low = 1e9, high = 0, lower = 1e9, higher = 0;
  for (int i = 0; i < 1000; ++i) {
    const double a = narrow.In({2, 8}), b = wide.In({2, 8});
    low = std::min(low, a), high = std::max(high, a);
    lower = std::min(lower, b), higher = std::max(higher, b);
  }
  EXPECT_GE(low, 2);
  EXPECT_LE(high, 8);
  EXPECT_LT(lower, low);
  EXPECT_GT(higher, high);
}

TEST(Generator, TwoFaultsAreBothRight) {
  Options options = Of("C2", 51);
  options.second = "B3";
  options.ranks = 8;
  options.minutes = 8;
  std::string bytes;
  const Truth truth = GenerateRecording(options, bytes);
  std::vector<std::string> codes = truth.accepted;
  codes.push_back(truth.family);
  EXPECT_THAT(codes, testing::IsSupersetOf({"C2", "B3"}));
}

}  // namespace
}  // namespace rankscope::generator
