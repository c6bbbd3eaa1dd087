// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Silence: how long is too long, and for whom.
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

features::JobFeatures Silent(double seconds) {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = true;
  f.timed = true;
  f.world_size = 8;
  f.processes_alive = 8;
  f.progress = 100;
  f.phase = proto::PHASE_TRAIN;
  f.usual_record_seconds = 1;
  f.step_seconds = 1;
  f.p99_record_seconds = 1;
  f.silence_seconds = seconds;
  return f;
}

TEST(HangTimeout, IsTheLargestOfFloorTenStepsAndThreeTimesTheSlowest) {
  features::JobFeatures f = Silent(0);
  EXPECT_DOUBLE_EQ(HangTimeout(f), 60);
  f.usual_record_seconds = 20;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 60) << "a record of many steps is no step";
  f.step_seconds = 30;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 300);
  f.p99_record_seconds = 200;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 600);
  f.step_seconds = 90;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 900);
  features::JobFeatures unknown;
  EXPECT_DOUBLE_EQ(HangTimeout(unknown), 60);
  unknown.hang_floor_seconds = 17;
  EXPECT_DOUBLE_EQ(HangTimeout(unknown), 17);
}

TEST(HangTimeout, SavingAndEvaluatingMayTakeLong) {
  features::JobFeatures f = Silent(0);
  f.phase = proto::PHASE_SAVE;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 600);
  f.longest_save_seconds = 400;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 1200);
  f.phase = proto::PHASE_EVAL;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 600);
  f.longest_eval_seconds = 250;
  EXPECT_DOUBLE_EQ(HangTimeout(f), 750);
}

TEST(CollectiveHang, FiresAtTheTimeoutAndNotBefore) {
  EXPECT_FALSE(collective_hang::Evaluate(Silent(59.9)).matched);
  const Finding finding = collective_hang::Evaluate(Silent(60));
  EXPECT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "silent");
  EXPECT_LE(finding.cap, cap::kUnseenSide) << "collectives of other ranks are not seen";
}

TEST(CollectiveHang, NotOfOneRankNorWithoutRegularityNorAfterTheEnd) {
  features::JobFeatures f = Silent(5000);
  f.world_size = 1;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Silent(5000);
  f.progress = 2;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Silent(5000);
  f.train_end = true;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Silent(5000);
  f.running = false;
  f.ended = true;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f = Silent(5000);
  f.timed = false;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched) << "text from a file tells no time";
  f = Silent(599);
  f.phase = proto::PHASE_SAVE;
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  f.silence_seconds = 600;
  EXPECT_TRUE(collective_hang::Evaluate(f).matched);
}

TEST(RendezvousHang, IsSuspectedThenBelieved) {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = f.in_rendezvous = true;
  f.phase = proto::PHASE_RENDEZVOUS;
  f.phase_seconds = 119;
  EXPECT_FALSE(rendezvous_hang::Evaluate(f).matched);
  f.phase_seconds = 120;
  EXPECT_TRUE(rendezvous_hang::Evaluate(f).matched);
  EXPECT_EQ(rendezvous_hang::Evaluate(f).tier, proto::TIER_W);
  f.phase_seconds = 300;
  EXPECT_EQ(rendezvous_hang::Evaluate(f).tier, proto::TIER_S);
  f.rendezvous_fire_seconds = 400;
  EXPECT_EQ(rendezvous_hang::Evaluate(f).tier, proto::TIER_W) << "the operator's knob";
  f.progress = 1;
  EXPECT_FALSE(rendezvous_hang::Evaluate(f).matched);
}

}  // namespace
}  // namespace rankscope::families
