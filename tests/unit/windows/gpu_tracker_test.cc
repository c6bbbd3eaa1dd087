// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/gpu_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

constexpr char kUuid[] = "GPU-5f1c0a77";

Timestamp At(double seconds) {
  return {static_cast<int64_t>(seconds * 1e9)};
}

Event Identity(std::string state = "up") {
  Event event;
  event.type = WireType(EventType::kGpuIdentity);
  event.str = {{"gpu_uuid", kUuid},
               {"bus_id", "0000:4f:00"},
               {"model", "H100"},
               {"state", std::move(state)}};
  event.num = {{"index", 3}};
  return event;
}

Event Process(int32_t pid, int64_t bytes, bool gone = false) {
  Event event;
  event.type = WireType(EventType::kGpuProcess);
  event.process = {pid, 1};
  event.str = {{"gpu_uuid", kUuid}, {"name", "python3"}};
  event.num = {{"bytes", bytes}, {"gone", gone ? 1 : 0}};
  return event;
}

Speaker Rank(int32_t rank) {
  Speaker speaker;
  speaker.rank = rank;
  return speaker;
}

Speaker Foreign() {
  Speaker speaker;
  speaker.foreign = true;
  return speaker;
}

SampleBatch Look(std::vector<Sample> samples) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kGpu;
  batch.subject.name = kUuid;
  batch.samples = std::move(samples);
  return batch;
}

const GpuWindow& Only(const GpuTracker& tracker) {
  return tracker.gpus().at(kUuid);
}

TEST(GpuTracker, KnowsWhatItsXidAsksForUntilThatIsDone) {
  GpuTracker tracker;
  Event waits = Identity();
  waits.num.push_back({"xid", 95});
  waits.num.push_back({"xid_ns", At(-60).ns});
  tracker.OnEvent(waits, {}, At(1));
  EXPECT_EQ(Only(tracker).xid, 95);
  EXPECT_EQ(Only(tracker).xid_since, At(-60));
  tracker.OnEvent(Identity(), {}, At(2));
  EXPECT_EQ(Only(tracker).xid, 0);
}

TEST(GpuTracker, IsTheJobsOnceAProcessOfItComputesThere) {
  GpuTracker tracker;
  tracker.OnEvent(Identity(), {}, At(1));
  tracker.OnEvent(Process(70, 5 << 20), Foreign(), At(2));
  EXPECT_EQ(tracker.HeldAt("0000:4f:00"), nullptr) << "somebody else's";
  tracker.OnEvent(Process(71, 9 << 20), Rank(2), At(3));
  ASSERT_NE(tracker.HeldAt("0000:4f:00"), nullptr);
  EXPECT_EQ(tracker.HeldAt("0000:50:00"), nullptr);
  EXPECT_EQ(tracker.HeldAt(""), nullptr);
  EXPECT_EQ(Only(tracker).ForeignBytes(), 5 << 20);
  EXPECT_EQ(Only(tracker).ranks, std::vector<int32_t>{2});
  tracker.OnEvent(Process(70, 0, true), Foreign(), At(4));
  EXPECT_EQ(Only(tracker).ForeignBytes(), 0);
  tracker.OnProcessExit({71, 1});
  EXPECT_TRUE(Only(tracker).holders.empty());
  EXPECT_NE(tracker.HeldAt("0000:4f:00"), nullptr) << "what it met there stays its own";
}

TEST(GpuTracker, WhatWasThereBeforeIsNoRise) {
  GpuTracker tracker;
  for (int second = 0; second < 5; ++second)
    tracker.OnSamples(Look({{SignalId::kEccUncorrected, 7}}), At(second));
  const GpuRise& ecc = Only(tracker).of(GpuCount::kEccUncorrected);
  EXPECT_EQ(ecc.first, 7);
  EXPECT_EQ(ecc.rose, 0);
  EXPECT_EQ(ecc.risen.ns, 0);
  tracker.OnSamples(Look({{SignalId::kEccUncorrected, 9}}), At(9));
  EXPECT_EQ(ecc.rose, 2);
  EXPECT_EQ(ecc.risen, At(9));
  tracker.OnSamples(Look({{SignalId::kEccUncorrected, 1}}), At(12));
  EXPECT_EQ(ecc.rose, 3) << "the card was reset, and has counted again";
  tracker.OnSamples(Look({{SignalId::kEccUncorrected, NAN}}), At(13));
  tracker.OnSamples(Look({{SignalId::kEccUncorrected, -1}}), At(14));
  EXPECT_EQ(ecc.rose, 3);
}

TEST(GpuTracker, TheBestClockIsOneThatNothingHeldDown) {
  GpuTracker tracker;
  const auto look = [&tracker](int second, float engine, float clock, float throttle) {
    tracker.OnSamples(Look({{SignalId::kEngineActivity, engine},
                            {SignalId::kSmClockHertz, clock},
                            {SignalId::kThrottleReasons, throttle}}),
                      At(second));
  };
  for (int i = 0; i < 20; ++i) look(i, 0.1F, 1.98e9F, 1);
  EXPECT_EQ(Only(tracker).best_clock, 0) << "idle cards clock as they like";
  for (int i = 20; i < 40; ++i) look(i, 0.9F, 1.2e9F, 0x40);
  EXPECT_EQ(Only(tracker).best_clock, 0);
  for (int i = 40; i < 50; ++i) look(i, 0.9F, 1.7e9F, 0);
  EXPECT_NEAR(Only(tracker).best_clock, 1.7e9, 1e3);
}

TEST(GpuTracker, MinutesOfTheEngine) {
  GpuTracker tracker;
  for (int second = 0; second < 301; ++second) {
    tracker.OnSamples(Look({{SignalId::kEngineActivity, second < 60 ? 0.9F : 0.1F}}), At(second));
  }
  EXPECT_NEAR(Only(tracker).engine_minutes.Highest(4), 0.1, 1e-6);
  EXPECT_NEAR(Only(tracker).engine_minutes.Highest(5), 0.9, 1e-6);
  EXPECT_TRUE(std::isnan(Only(tracker).engine_minutes.Highest(6))) << "the last one is not over";
  EXPECT_EQ(Only(tracker).active, At(300));
}

TEST(GpuTracker, MinutesOfTheLastHour) {
  GpuTracker tracker;
  constexpr float kHeat = 0x40;
  for (int second = 60; second < 330; ++second) {
    if (second >= 120 && second < 170) continue;  // too few looks are left of that minute
    tracker.OnSamples(Look({{SignalId::kEngineActivity, 0.5F},
                            {SignalId::kThrottleReasons, second < 90 ? kHeat : 0}}),
                      At(second));
  }
  const std::vector<float> engine = Only(tracker).engine_minutes.Until(5, 6);
  ASSERT_EQ(engine.size(), 6u);
  EXPECT_TRUE(std::isnan(engine[0])) << "before its first look";
  EXPECT_FLOAT_EQ(engine[1], 0.5F);
  EXPECT_TRUE(std::isnan(engine[2]));
  EXPECT_FLOAT_EQ(engine[4], 0.5F);
  EXPECT_FLOAT_EQ(engine[5], 0.5F) << "not over, and already known";
  EXPECT_FLOAT_EQ(Only(tracker).throttled_minutes.Until(5, 6)[1], 0.5F);
  EXPECT_FLOAT_EQ(Only(tracker).throttled_minutes.Until(5, 6)[3], 0);
  EXPECT_TRUE(std::isnan(Only(tracker).sm_minutes.Until(5, 6)[5])) << "it does not tell";
  EXPECT_TRUE(std::isnan(Only(tracker).engine_minutes.Until(500, 6)[5])) << "long ago";
}

TEST(GpuTracker, IsBounded) {
  GpuTracker tracker;
  for (int i = 0; i < 5000; ++i) {
    SampleBatch batch = Look({{SignalId::kEngineActivity, 1}});
    batch.subject.name = "GPU-" + std::to_string(i);
    tracker.OnSamples(batch, At(i));
    tracker.OnEvent(Process(i, 1), Foreign(), At(i));
  }
  EXPECT_EQ(tracker.gpus().size(), GpuTracker::kMaxGpus);
  for (const auto& [uuid, gpu] : tracker.gpus())
    EXPECT_LE(gpu.holders.size(), GpuTracker::kMaxHolders);
}

TEST(GpuTracker, SurvivesItsArchive) {
  GpuTracker tracker;
  tracker.OnEvent(Identity("lost"), {}, At(1));
  tracker.OnEvent(Process(71, 9 << 20), Rank(2), At(3));
  tracker.OnSamples(Look({{SignalId::kEccUncorrected, 7}, {SignalId::kEngineActivity, 0.5F}}),
                    At(4));
  ArchiveWriter writer;
  tracker.Fields(writer);
  const std::string bytes = writer.Take();
  GpuTracker restored;
  ArchiveReader reader(bytes);
  restored.Fields(reader);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(Only(restored).state, "lost");
  EXPECT_EQ(Only(restored).index, 3);
  EXPECT_EQ(Only(restored).of(GpuCount::kEccUncorrected).first, 7);
  EXPECT_EQ(Only(restored).newest(0).engine, 0.5F);
  EXPECT_EQ(Only(restored).holders.at({71, 1}).rank, 2);
}

}  // namespace
}  // namespace rankscope::windows
