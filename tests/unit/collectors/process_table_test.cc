// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/process_table.h"

#include <gtest/gtest.h>

namespace rankscope::collectors {
namespace {

TrackedProcess Of(ProcessKey key) {
  TrackedProcess process;
  process.key = key;
  return process;
}

TEST(ProcessTable, AnEndIsRememberedSoThatAScanDoesNotBringItBack) {
  ProcessTable table;
  const ProcessKey key{7, 100};
  EXPECT_FALSE(table.HasEnded(key));
  table.Add(Of(key));
  EXPECT_FALSE(table.HasEnded(key));
  table.Remove(key);
  EXPECT_TRUE(table.HasEnded(key));
  EXPECT_FALSE(table.HasEnded({7, 101})) << "the next owner of the pid";
}

TEST(ProcessTable, AsksForTheLauncherOfRanksThatNothingElseNames) {
  ProcessTable table;
  TrackedProcess rank = Of({21, 100});
  rank.parent = {20, 90};
  table.Add(rank);
  EXPECT_TRUE(table.TakeAsked().empty()) << "a shell has set RANK";
  rank.from_launcher = true;
  rank.job_id = "77";
  table.Add(rank);
  EXPECT_TRUE(table.TakeAsked().empty()) << "the launcher carries that, too";
  rank.job_id.clear();
  table.Add(rank);
  EXPECT_EQ(table.TakeAsked(), (std::vector<ProcessKey>{{20, 90}}));
  table.Add(Of({20, 90}));
  table.Add(rank);
  EXPECT_TRUE(table.TakeAsked().empty()) << "it is there";
  rank.parent = {1, 1};
  table.Add(rank);
  EXPECT_TRUE(table.TakeAsked().empty());
}

TEST(ProcessTable, WhatWasNeverTrackedHasNoEnd) {
  ProcessTable table;
  table.Remove({7, 100});
  EXPECT_FALSE(table.HasEnded({7, 100}));
}

TEST(ProcessTable, EndsAreForgottenInTheirOrder) {
  ProcessTable table;
  for (int32_t pid = 1; pid <= 10'000; ++pid) {
    table.Add(Of({pid, 1}));
    table.Remove({pid, 1});
  }
  EXPECT_FALSE(table.HasEnded({1, 1}));
  EXPECT_TRUE(table.HasEnded({10'000, 1}));
}

TEST(ProcessTable, ARunBeginsWithAProcessWhoseParentIsNotTracked) {
  ProcessTable table;
  table.AddRoot({5, 1}, "job");
  EXPECT_EQ(table.begun(), 1);
  table.Add(Of({5, 1}));  // its facts have come
  TrackedProcess child = Of({6, 2});
  child.parent = {5, 1};
  table.Add(child);
  EXPECT_EQ(table.begun(), 1);
  table.Add(Of({7, 3}));
  EXPECT_EQ(table.begun(), 2);
}

TEST(ProcessTable, ExitsAreToldWhileAnybodyTellsThem) {
  ProcessTable table;
  const int a = 0, b = 0;
  table.set_exits_told(&a, true);
  table.set_exits_told(&b, true);
  table.set_exits_told(&a, false);
  EXPECT_TRUE(table.exits_told());
  table.set_exits_told(&b, false);
  EXPECT_FALSE(table.exits_told());
}

TEST(ProcessTable, WhoListensHearsOfBirthAndDeath) {
  ProcessTable table;
  std::vector<std::pair<int32_t, bool>> heard;
  table.set_on_change(
      [&](const ProcessKey& key, bool tracked) { heard.emplace_back(key.pid, tracked); });
  table.AddRoot({5, 1}, "job");
  table.Remove({5, 2});
  table.Remove({5, 1});
  EXPECT_EQ(heard, (std::vector<std::pair<int32_t, bool>>{{5, true}, {5, false}}));
}

TEST(ProcessTable, WhatHasNoRankTakesAtMostHalfOfTheRoom) {
  ProcessTable table;
  const auto unranked = [](int32_t pid) {
    TrackedProcess process = Of({pid, 1});
    process.unranked = true;
    return process;
  };
  for (int32_t pid = 1; pid <= static_cast<int32_t>(ProcessTable::kMaxUnranked); ++pid)
    ASSERT_TRUE(table.Add(unranked(pid)));
  EXPECT_FALSE(table.Add(unranked(100'000)));
  EXPECT_EQ(table.dropped(), 1);
  EXPECT_TRUE(table.Add(Of({100'000, 1}))) << "a rank";
  EXPECT_TRUE(table.Add(unranked(1))) << "told again";
  table.Remove({1, 1});
  EXPECT_TRUE(table.Add(unranked(100'001)));
  EXPECT_FALSE(table.Add(unranked(100'002)));
  EXPECT_TRUE(table.Add(Of({2, 1}))) << "an exec has given it a rank";
  EXPECT_TRUE(table.Add(unranked(100'002)));
}

TrackedProcess OfUser(int32_t pid, uint32_t uid) {
  TrackedProcess process = Of({pid, 1});
  process.uid = uid;
  return process;
}

TEST(ProcessTable, WhoHasTheMostGivesUpHisNewestForAnother) {
  ProcessTable table;
  std::vector<int32_t> gone;
  const auto most = static_cast<int32_t>(ProcessTable::kMaxTracked);
  for (int32_t pid = 1; pid <= most; ++pid) ASSERT_TRUE(table.Add(OfUser(pid, 1001)));
  table.set_on_change([&](const ProcessKey& key, bool tracked) {
    if (!tracked) gone.push_back(key.pid);
  });
  EXPECT_FALSE(table.Add(OfUser(most + 1, 1001)));
  EXPECT_TRUE(table.Add(OfUser(most + 2, 1002)));
  EXPECT_EQ(gone, std::vector<int32_t>{most});
  EXPECT_EQ(table.Find(most), nullptr);
  EXPECT_FALSE(table.HasEnded({most, 1})) << "it lives, and nobody looks";
  EXPECT_EQ(table.processes().size(), ProcessTable::kMaxTracked);
  EXPECT_EQ(table.dropped(), 2);
}

TEST(ProcessTable, RootGivesUpNothing) {
  ProcessTable table;
  const auto most = static_cast<int32_t>(ProcessTable::kMaxTracked);
  for (int32_t pid = 1; pid <= most; ++pid) ASSERT_TRUE(table.Add(OfUser(pid, 0)));
  EXPECT_FALSE(table.Add(OfUser(most + 1, 1002)));
}

}  // namespace
}  // namespace rankscope::collectors
