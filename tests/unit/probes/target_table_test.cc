// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/target_table.h"

#include <gtest/gtest.h>

#include "exporter/probes/attach/allowance.h"

namespace rankscope::probes {
namespace {

constexpr uint32_t kVictim = 1, kAttacker = 2, kFriend = 3;

FileVersion File(uint64_t inode) {
  return {1, inode, 0, 0, 0};
}

size_t FilesOf(const TargetTable& table, uint32_t user) {
  size_t files = 0;
  for (const auto& [key, target] : table.targets()) files += target.users.contains(user) ? 1 : 0;
  return files;
}

TargetTable FullOf(uint32_t user) {
  TargetTable table;
  for (uint64_t inode = 1; inode <= TargetTable::kMost; ++inode)
    EXPECT_TRUE(table.Admit(File(inode), user).admitted);
  return table;
}

TEST(TargetTable, WhoHasLessTakesFromWhoHasMost) {
  TargetTable table = FullOf(kAttacker);
  EXPECT_FALSE(table.Admit(File(1000), kAttacker).admitted);
  for (uint64_t inode = 100; inode < 108; ++inode) {
    const TargetTable::Admission admission = table.Admit(File(inode), kVictim);
    EXPECT_TRUE(admission.admitted);
    ASSERT_TRUE(admission.evicted);
    EXPECT_EQ(admission.evicted->owner, kAttacker);
    EXPECT_FALSE(table.Find(admission.evicted->file));
  }
  EXPECT_EQ(table.targets().size(), TargetTable::kMost);
  EXPECT_EQ(FilesOf(table, kVictim), 8u);
  // Copies without end take nothing back.
  for (uint64_t inode = 1000; inode < 2000; ++inode)
    EXPECT_FALSE(table.Admit(File(inode), kAttacker).admitted);
  EXPECT_EQ(FilesOf(table, kVictim), 8u);
}

TEST(TargetTable, TheSharesOfAllBecomeEqualAtMost) {
  TargetTable table = FullOf(kAttacker);
  for (uint64_t inode = 1000; inode < 2000; ++inode) table.Admit(File(inode), kVictim);
  EXPECT_EQ(FilesOf(table, kVictim), TargetTable::kMost / 2);
  EXPECT_EQ(FilesOf(table, kAttacker), TargetTable::kMost / 2);
}

TEST(TargetTable, WhatNobodyUsesGoesFirst) {
  TargetTable table = FullOf(kAttacker);
  table.BeginUsers();
  for (uint64_t inode = 1; inode <= TargetTable::kMost; ++inode) {
    if (inode != 7) table.AddUser(File(inode), kAttacker);
  }
  EXPECT_TRUE(table.Unused(1).empty());
  const TargetTable::Admission admission = table.Admit(File(1000), kAttacker);
  EXPECT_TRUE(admission.admitted);
  ASSERT_TRUE(admission.evicted);
  EXPECT_EQ(admission.evicted->file, File(7));
}

TEST(TargetTable, AFileOfThePoorIsNotTakenForBeingSharedWithTheRich) {
  TargetTable table = FullOf(kAttacker);
  table.AddUser(File(TargetTable::kMost), kVictim);  // the attacker's last, and the victim's only
  for (int i = 0; i < 20; ++i) table.Admit(File(1000 + static_cast<uint64_t>(i)), kFriend);
  EXPECT_TRUE(table.Find(File(TargetTable::kMost)));
}

TEST(TargetTable, TwoWhoShareAllFilesKeepNoMoreThanOne) {
  TargetTable table = FullOf(kAttacker);
  for (uint64_t inode = 1; inode <= TargetTable::kMost; ++inode)
    table.AddUser(File(inode), kFriend);
  EXPECT_TRUE(table.Admit(File(1000), kVictim).admitted);
}

TEST(TargetTable, AfterAWhileTheUnusedAreNamed) {
  TargetTable table;
  table.Admit(File(1), kVictim);
  EXPECT_TRUE(table.Unused(2).empty());
  table.BeginUsers();
  EXPECT_TRUE(table.Unused(2).empty());
  EXPECT_TRUE(table.Unused(2).empty());
  EXPECT_EQ(table.Unused(2).size(), 1u);
  table.AddUser(File(1), kVictim);
  EXPECT_TRUE(table.Unused(2).empty());
}

TEST(Allowance, IsSpentAtOnceAndComesBackInTime) {
  constexpr int64_t kSecond = 1'000'000'000;
  Allowance allowance(2, 0.5);
  EXPECT_TRUE(allowance.Left(5 * kSecond));
  allowance.Spend(3);
  EXPECT_FALSE(allowance.Left(5 * kSecond));
  EXPECT_FALSE(allowance.Left(6 * kSecond));
  EXPECT_TRUE(allowance.Left(8 * kSecond));
  // No more than the burst is saved up.
  EXPECT_TRUE(allowance.Left(1000 * kSecond));
  allowance.Spend(2.5);
  EXPECT_FALSE(allowance.Left(1000 * kSecond));
}

}  // namespace
}  // namespace rankscope::probes
