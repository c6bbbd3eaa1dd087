// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine tells of ranks besides verdicts.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

constexpr ProcessKey kRoot{100, 1}, kRank{101, 2}, kWorker{102, 3}, kNext{103, 4};

SampleBatch Of(const ProcessKey& process, std::vector<Sample> samples) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = process;
  batch.samples = std::move(samples);
  return batch;
}

// One rank with a worker below it, played as far as each answer needs.
struct OneRank {
  Tape tape;
  std::optional<Engine> engine;

  OneRank() {
    tape.Begin(0, {"torchrun", "train.py"}, 1, kRoot);
    tape.StartRank(1, kRank, kRoot, 0, 1);
    tape.Start(1, kWorker, kRank, {});
  }
  RankStatus At(double second) {
    tape.Finish(second);
    engine.emplace(Config{}, "n1");
    Play(tape, *engine, 0, tape.size());
    const JobStatus* job = engine->Find("j1");
    return job == nullptr || job->ranks.empty() ? RankStatus() : job->ranks.front();
  }
};

double Attached(float use, std::optional<float> devices) {
  OneRank run;
  run.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, use}}));
  if (devices) run.tape.Add(2, Of(kRank, {{SignalId::kGpuDevicesOpen, *devices}}));
  return run.At(3).cuda_attached;
}

TEST(Attached, NeedsTheLibraryAndADeviceOrWork) {
  EXPECT_EQ(Attached(0, 0), 0);
  EXPECT_EQ(Attached(0, 1), 0) << "who only watches the card";
  EXPECT_EQ(Attached(1, 0), 0) << "PyTorch on a machine without a card";
  EXPECT_EQ(Attached(1, std::nullopt), 0);
  EXPECT_EQ(Attached(1, 2), 1);
  EXPECT_EQ(Attached(2, 0), 1) << "it has launched: a device that /proc does not show";
}

TEST(Attached, IsNotKnownOfWhomNobodyHasLookedAt) {
  OneRank run;
  run.tape.Add(2, Of(kWorker, {{SignalId::kCudaUse, 2}}));
  EXPECT_TRUE(std::isnan(run.At(3).cuda_attached)) << "a worker's is not the rank's";
}

TEST(Attached, EndsWithTheProcess) {
  OneRank run;
  run.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, 2}}));
  run.tape.Exit(3, kRank, Exited(1));
  EXPECT_EQ(run.At(4).cuda_attached, 0);

  OneRank again;
  again.tape.Add(2, Of(kRank, {{SignalId::kCudaUse, 2}}));
  again.tape.Exit(3, kRank, Exited(1));
  again.tape.StartRank(4, kNext, kRoot, 0, 1, 1);
  EXPECT_TRUE(std::isnan(again.At(5).cuda_attached)) << "the next process was not looked at yet";
}

TEST(LaunchGaps, StandAsTheyWereToldAndAreRestored) {
  OneRank run;
  std::vector<Sample> all = {{SignalId::kLaunchGapSeconds, 1.5}};
  for (size_t slot = 0; slot < kLaunchGapSlots; ++slot) all.push_back({LaunchGapSignal(slot), 0});
  run.tape.Add(2, Of(kRank, all));
  run.tape.Add(3, Of(kRank, {{SignalId::kLaunchGapSeconds, 2.5}, {SignalId::kLaunchGaps2Ms, 7}}));
  run.tape.Add(4, Of(kRank, {{SignalId::kLaunchGapsLonger, 1}}));
  const auto expect = [](const RankStatus& rank) {
    EXPECT_TRUE(rank.launch_gaps_counted);
    EXPECT_EQ(rank.Call(SignalId::kLaunchGapSeconds), 2.5);
    for (size_t slot = 0; slot < kLaunchGapSlots; ++slot) {
      EXPECT_EQ(rank.launch_gaps[slot], slot == 1 ? 7 : slot == 17 ? 1 : 0) << slot;
    }
  };
  expect(run.At(5));
  Engine after({}, "n1");
  ASSERT_TRUE(after.Restore(run.engine->Save()));
  after.Tick(AtSecond(6));
  expect(after.Find("j1")->ranks.front());

  EXPECT_FALSE(OneRank().At(2).launch_gaps_counted);
}

}  // namespace
}  // namespace rankscope::engine
