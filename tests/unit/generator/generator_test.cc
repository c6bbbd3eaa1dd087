// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "detectors/recording/recording.h"
#include "tests/generator/faults.h"
#include "tests/generator/named.h"

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

// What a mechanism needs more than was asked for, it takes.
TEST_P(EveryFamily, IsMadeForEachNumberOfRanks) {
  for (const int ranks : {1, 2, 4, 8, 16}) {
    Options options = Of(GetParam(), 13);
    options.minutes = 4;
    options.ranks = ranks;
    std::string bytes;
    const Truth truth = GenerateRecording(options, bytes);
    EXPECT_FALSE(Count(bytes).failed) << ranks;
    EXPECT_EQ(truth.family, GetParam() == "healthy" ? "G1" : GetParam()) << ranks;
    // One process hangs for itself; several nodes have two ranks at least.
    const int another = GetParam() == "C3" ? 1 : ranks == 1 ? 2 : ranks;
    EXPECT_THAT(truth.world, testing::AnyOf(ranks, another));
    EXPECT_EQ(truth.world % truth.nodes, 0) << ranks;
    for (const int rank : truth.ranks) EXPECT_LT(rank, truth.world) << ranks;
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

// The wrapper has one pipe for all that its command prints.
TEST(Generator, UnderTheWrapperThereIsOneStream) {
  Options options = Of("healthy", 61);
  options.minutes = 4;
  options.ranks = 2;
  options = Seek(options, [](const Plan& plan) { return plan.wrapper; });
  std::string bytes;
  GenerateRecording(options, bytes);
  int lines = 0;
  Count(bytes, [&](const Observation& observation) {
    const auto* const line = std::get_if<LogLine>(&observation.kind);
    if (line == nullptr) return;
    ++lines;
    EXPECT_EQ(line->stream_name, "output");
    EXPECT_EQ(line->rank, -1);
  });
  EXPECT_GT(lines, 10);
}

// bpf/process.bpf.c: nobody is the sender of what the kernel sends.
TEST(Generator, TheKernelsOwnSignalsHaveNoSender) {
  int by_kernel = 0;
  for (uint64_t seed = 70; seed < 80; ++seed) {
    Options options = Of("A2", seed);
    options.ranks = 2;
    options.minutes = 4;
    std::string bytes;
    GenerateRecording(options, bytes);
    Count(bytes, [&](const Observation& observation) {
      const auto* const sent = std::get_if<SignalSent>(&observation.kind);
      if (sent == nullptr || sent->si_code <= 0) return;
      ++by_kernel;
      EXPECT_EQ(sent->sender.pid, 0);
    });
  }
  EXPECT_GT(by_kernel, 0);
}

// A main thread that waits for its GPU is in a synchronisation, or in launches.
TEST(Generator, ABusyProgramWaitsInCalls) {
  Options options = Of("healthy", 81);
  options.minutes = 5;
  options.ranks = 2;
  options.plain = true;
  std::string bytes;
  const Truth truth = GenerateRecording(options, bytes);
  double in_calls = 0;
  Count(bytes, [&](const Observation& observation) {
    const auto* const batch = std::get_if<SampleBatch>(&observation.kind);
    if (batch == nullptr) return;
    double sync = -1, launches = 0;
    for (const Sample& sample : batch->samples) {
      if (sample.signal == SignalId::kCudaSyncSeconds) sync = sample.value;
      if (sample.signal == SignalId::kLaunchSeconds) launches = sample.value;
    }
    if (sync >= 0) in_calls = std::max(in_calls, sync + launches);
  });
  EXPECT_GT(in_calls, 0.2 * truth.seconds);
  EXPECT_LT(in_calls, truth.seconds);
}

TEST(Generator, WhatIsMissingCannotDecide) {
  for (const auto& [family, store] :
       std::vector<std::pair<std::string, std::string>>{{"E1", "text"}, {"B3", "nvml"}}) {
    Options options = Of(family, 91);
    options.ranks = 4;
    options.minutes = 5;
    std::string bytes;
    EXPECT_TRUE(GenerateRecording(options, bytes).decidable) << family;
    options.without = {store};
    EXPECT_FALSE(GenerateRecording(options, bytes).decidable) << family;
  }
}

TEST(Generator, ARequeuedJobBeginsAnew) {
  int again = 0;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    Options options = Of("F2", seed);
    options.ranks = 2;
    options.minutes = 8;
    std::string bytes;
    GenerateRecording(options, bytes);
    std::set<std::string> counts;
    Count(bytes, [&](const Observation& observation) {
      const auto* const fact = std::get_if<SchedulerFact>(&observation.kind);
      if (fact != nullptr && fact->field == "restarts") counts.insert(fact->value);
    });
    again += counts.size() == 2;
  }
  EXPECT_GT(again, 0);
}

class EveryNamedJob : public testing::TestWithParam<std::string> {};

TEST_P(EveryNamedJob, HasTheNumbersOfItsText) {
  std::string bytes;
  const Truth truth = GenerateRecording(Of(GetParam(), 1), bytes);
  const Counts counts = Count(bytes);
  EXPECT_FALSE(counts.failed) << counts.error;
  EXPECT_EQ(truth.family, FindNamed(GetParam())->code);
  EXPECT_TRUE(truth.decidable) << TruthJson(truth);
  EXPECT_LE(truth.onset, truth.seconds);
}

INSTANTIATE_TEST_SUITE_P(All, EveryNamedJob, testing::ValuesIn(NamedJobs()),
                         [](const auto& of) { return of.param; });

TEST(Generator, TheProtocolsIncidentHasItsBandwidths) {
  std::string bytes;
  const Truth truth = GenerateRecording(Of("protocol", 1), bytes);
  EXPECT_EQ(truth.world, 256);
  std::vector<double> bandwidths;
  int64_t out_of_sequence = 0;
  Count(bytes, [&](const Observation& observation) {
    const auto* const event = std::get_if<Event>(&observation.kind);
    if (event == nullptr) return;
    for (const IntKeyValue& number : event->num) {
      if (number.key == "bus_bytes_per_second")
        bandwidths.push_back(static_cast<double>(number.value) / 1e9);
      if (number.key == "out_of_sequence")
        out_of_sequence = std::max(out_of_sequence, number.value);
    }
  });
  ASSERT_FALSE(bandwidths.empty());
  EXPECT_NEAR(bandwidths.front(), 42.3, 0.5);
  EXPECT_NEAR(bandwidths.back(), 17.1, 0.8);
  EXPECT_GT(out_of_sequence, 1000);
}

}  // namespace
}  // namespace rankscope::generator
