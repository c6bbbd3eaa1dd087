// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/ras_roster.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"

namespace rankscope::reports {
namespace {

// Ranks from 0 on, two to a host.
RasCommunicator Of(std::vector<int64_t> pids, std::string id = "0x1") {
  RasCommunicator communicator;
  communicator.id = std::move(id);
  communicator.size = static_cast<int32_t>(pids.size());
  for (size_t i = 0; i < pids.size(); ++i) {
    RasRank rank;
    rank.rank = static_cast<int32_t>(i);
    rank.pid = pids[i];
    rank.host = "10.0.0." + std::to_string(1 + i / 2);
    communicator.ranks.push_back(rank);
  }
  return communicator;
}

RasReport With(std::vector<RasCommunicator> communicators) {
  RasReport report;
  report.communicators = std::move(communicators);
  return report;
}

TEST(RasRoster, IsTheLargestCommunicators) {
  const RasRoster roster =
      ReadRoster(With({Of({11, 12}, "pair"), Of({11, 12, 21, 22}, "world"), Of({21, 22}, "pair")}));
  EXPECT_EQ(roster.communicator, "world");
  ASSERT_EQ(roster.size(), 4);
  EXPECT_EQ(roster.members[2].pid, 21);
  EXPECT_EQ(roster.members[2].host, "10.0.0.2");
}

TEST(RasRoster, NumbersThatOnlyOneOfTwoHasAreNobodys) {
  EXPECT_EQ(ReadRoster(With({Of({11, 12}), Of({11, 12})})).size(), 2);
  EXPECT_EQ(ReadRoster(With({Of({11, 12}), Of({12, 11})})).size(), 0);
}

TEST(RasRoster, WhatIsNotListedWholeIsNone) {
  RasCommunicator one_short = Of({11, 12, 21});
  one_short.size = 4;
  EXPECT_EQ(ReadRoster(With({one_short})).size(), 0);
  EXPECT_EQ(ReadRoster(With({one_short, Of({11, 12})})).size(), 0) << "the largest is not listed";
  RasCommunicator twice = Of({11, 12});
  twice.ranks[1].rank = 0;
  EXPECT_EQ(ReadRoster(With({twice})).size(), 0);
  RasCommunicator nameless = Of({11, -1});
  EXPECT_EQ(ReadRoster(With({nameless})).size(), 0);
  RasCommunicator outside = Of({11, 12});
  outside.ranks[1].rank = 1 << 30;
  EXPECT_EQ(ReadRoster(With({outside})).size(), 0);
  RasCommunicator huge;
  huge.size = INT32_MAX;
  EXPECT_EQ(ReadRoster(With({huge})).size(), 0);
  EXPECT_EQ(ReadRoster(With({})).size(), 0);
}

TEST(RasRoster, AHostIsKnownByAllItsProcesses) {
  const RasRoster roster = ReadRoster(With({Of({11, 12, 21, 22})}));
  EXPECT_EQ(HostOf(roster, {21, 22}), "10.0.0.2");
  EXPECT_EQ(HostOf(roster, {21}), "") << "not all of them";
  EXPECT_EQ(HostOf(roster, {21, 22, 23}), "");
  EXPECT_EQ(HostOf(roster, {}), "");
  // Containers number their processes from 1: two nodes may have the same.
  EXPECT_EQ(HostOf(ReadRoster(With({Of({7, 8, 7, 8})})), {7, 8}), "");
}

TEST(RasRoster, OutlivesARestart) {
  RasRoster roster = ReadRoster(With({Of({11, 12})}));
  ArchiveWriter writer;
  writer(roster);
  const std::string bytes = writer.Take();
  RasRoster again;
  ArchiveReader reader(bytes);
  reader(again);
  EXPECT_TRUE(reader.Complete());
  EXPECT_EQ(again.members, roster.members);
}

}  // namespace
}  // namespace rankscope::reports
