// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D3 by what threads wait for: a rank whose files are slow, at the thresholds, on numbers made by
// hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using testing::ElementsAre;

// Of four ranks that train, rank 2 may be given waits of its own.
features::JobFeatures Training() {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = f.timed = true;
  f.world_size = 4;
  f.processes_alive = 4;
  f.progress = 100;
  f.silence_seconds = 1;
  f.usual_record_seconds = 2;
  for (int32_t rank = 0; rank < 4; ++rank) {
    features::RankWait wait;
    wait.rank = rank;
    wait.window_seconds = wait.recent_seconds = 60;
    wait.window_running_share = 0.3;
    f.waits.ranks.push_back(wait);
  }
  return f;
}

features::RankWait& Rank2(features::JobFeatures& f) {
  return f.waits.ranks[2];
}

TEST(SlowStorage, OfTheMainThreadItself) {
  features::JobFeatures f = Training();
  Rank2(f).storage = {0.39, WaitClass::kNetworkFile};
  EXPECT_FALSE(straggler::Evaluate(f).matched);
  Rank2(f).storage.share = 0.4;
  const Finding finding = straggler::Evaluate(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "slow_storage");
  EXPECT_THAT(finding.ranks, ElementsAre(2));
  f.waits.ranks[0].storage.share = 0.11;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "more than a quarter of it";
  f.waits.ranks[0].storage.share = 0.1;
  EXPECT_TRUE(straggler::Evaluate(f).matched);
}

TEST(SlowStorage, OfALoaderOnlyIfItsRankWaitsForIt) {
  features::JobFeatures f = Training();
  Rank2(f).worker_storage = {0.6, WaitClass::kNetworkFile};
  Rank2(f).window_socket_share = 0.4;
  EXPECT_TRUE(straggler::Evaluate(f).matched);
  Rank2(f).window_socket_share = 0.39;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "it keeps up";
  Rank2(f).window_socket_share = 0.4;
  f.waits.ranks[1].window_socket_share = 0.11;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "others wait so too";
  f.waits.ranks[1].window_socket_share = 0;
  Rank2(f).worker_storage.share = 0.59;
  EXPECT_FALSE(straggler::Evaluate(f).matched);
}

TEST(SlowStorage, IsNotSaid) {
  features::JobFeatures ready = Training();
  Rank2(ready).storage = {0.8, WaitClass::kBlock};
  ASSERT_TRUE(straggler::Evaluate(ready).matched);
  features::JobFeatures f = ready;
  f.storage.save_share = 0.1;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "of a rank that writes checkpoints";
  f = ready;
  f.phase = proto::PHASE_SAVE;
  EXPECT_FALSE(straggler::Evaluate(f).matched);
  f = ready;
  f.silence_seconds = 11;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "where no step comes: that is no slowness";
  f = ready;
  Rank2(f).window_seconds = 29;
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "after a few looks";
  f = ready;
  f.waits.ranks.erase(f.waits.ranks.begin(), f.waits.ranks.begin() + 2);
  f.waits.ranks.pop_back();
  EXPECT_FALSE(straggler::Evaluate(f).matched) << "where nobody is there to compare it with";
}

}  // namespace
}  // namespace rankscope::families
