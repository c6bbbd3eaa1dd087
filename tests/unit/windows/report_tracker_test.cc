// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL and PyTorch report, remembered: whom RAS names and for how long unchanged, the dumps of
// the ranks, and bytes that nobody should have sent.
#include "detectors/windows/trackers/report_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

using testing::ElementsAre;

Timestamp At(double second) {
  return {static_cast<int64_t>((1000 + second) * 1e9)};
}

reports::RasRank Rank(int32_t rank, int64_t reductions, int64_t gathers = 0) {
  reports::RasRank one;
  one.rank = rank;
  one.pid = 100 + rank;
  one.host = "h";
  one.state = reports::RasRank::State::kRunning;
  one.launched = {0, 0, gathers, 0, reductions, reductions + gathers};
  return one;
}

reports::RasReport Report(std::vector<reports::RasRank> ranks) {
  reports::RasCommunicator world;
  world.id = "w";
  world.size = static_cast<int32_t>(ranks.size());
  world.mismatch = true;
  for (const size_t operation : {size_t{2}, size_t{4}}) {
    std::map<int64_t, int32_t> counts;
    for (const reports::RasRank& rank : ranks) ++counts[rank.launched[operation]];
    for (const auto& [launched, count] : counts)
      world.counts.push_back({operation, launched, count});
  }
  world.ranks = std::move(ranks);
  reports::RasReport report;
  report.version = "2.28.9";
  report.communicators = {world};
  return report;
}

TEST(RasSuspects, TheFewThatLag) {
  const auto found =
      FindRasSuspects(Report({Rank(0, 12), Rank(1, 12), Rank(2, 11), Rank(3, 12)}), At(0));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, RasSuspect::Kind::kBehind);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(found[0].launched, 11);
  EXPECT_EQ(found[0].furthest, 12);
  EXPECT_EQ(found[0].waiting, 3);
}

// Half of them are no exception; of two, one is.
TEST(RasSuspects, HowFewIsFew) {
  EXPECT_TRUE(
      FindRasSuspects(Report({Rank(0, 12), Rank(1, 12), Rank(2, 11), Rank(3, 11)}), At(0)).empty());
  EXPECT_EQ(FindRasSuspects(Report({Rank(0, 12), Rank(1, 11)}), At(0)).size(), 1u);
  // Nobody who is not named can be among them.
  reports::RasReport report = Report({Rank(0, 12), Rank(1, 12), Rank(2, 11), Rank(3, 12)});
  report.communicators[0].ranks.erase(report.communicators[0].ranks.begin() + 2);
  EXPECT_TRUE(FindRasSuspects(report, At(0)).empty());
}

// Fewer of one and more of another: no prefix of the same program does that.
TEST(RasSuspects, AnotherOrderIsNoLag) {
  const auto found = FindRasSuspects(
      Report({Rank(0, 12, 5), Rank(1, 12, 5), Rank(2, 11, 6), Rank(3, 12, 5)}), At(0));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].kind, RasSuspect::Kind::kOutOfOrder);
  EXPECT_EQ(found[0].rank, 2);
}

TEST(RasSuspects, TheDeadOnce) {
  reports::RasReport report = Report({Rank(0, 12), Rank(1, 12), Rank(2, 12), Rank(3, 12)});
  report.communicators[0].ranks[1].state = reports::RasRank::State::kDead;
  report.dead = {{"h", 101, "1"}, {"h", 999, "2"}};
  const auto found = FindRasSuspects(report, At(0));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[1].pid, 999);
}

TEST(ReadRanks, RunsAndStrides) {
  EXPECT_THAT(ReadRanks("0-3,9"), ElementsAre(0, 1, 2, 3, 9));
  EXPECT_THAT(ReadRanks("0-24/8,25"), ElementsAre(0, 8, 16, 24, 25));
  EXPECT_THAT(ReadRanks("5"), ElementsAre(5));
  for (const std::string_view text :
       {"", ",", "a", "3-1", "1-", "0-9/0", "-1", "0-2147483647", "1,,2", "1 2"}) {
    EXPECT_TRUE(ReadRanks(text).empty()) << text;
  }
}

Event Ras(int64_t behind, int64_t most) {
  Event event;
  event.type = WireType(EventType::kRasReport);
  event.str = {{"text",
                "NCCL version 2.26.2 compiled with CUDA 12.6\n\nCommunicators... (0.00s)\n"
                "=============\n\nGroup     Comms     Nodes     Ranks     Ranks     Ranks    "
                "Status  Errors\n    #  in group  per comm  per node  per comm  in group\n"
                "    0         1         1         4         4         4   RUNNING  MISMATCH\n\n"
                "Errors\n======\n\nWarnings\n========\n\n#0-0 (27) MISMATCH\n"
                "  Communicator ranks have different AllReduce operation counts\n"
                "  3 ranks have launched up to operation " +
                    std::to_string(most) + "\n  Rank 2 has launched up to operation " +
                    std::to_string(behind) +
                    " -- GPU 2 managed by process 103 on node 10.0.0.1\n"}};
  return event;
}

TEST(ReportTracker, CountsHowLongASuspectStandsUnchanged) {
  ReportTracker tracker;
  tracker.OnEvent(Ras(11, 12), {}, At(0));
  tracker.OnEvent(Ras(11, 12), {}, At(30));
  tracker.OnEvent(Ras(11, 12), {}, At(60));
  ASSERT_EQ(tracker.suspects().size(), 1u);
  EXPECT_EQ(tracker.suspects()[0].reports, 3);
  EXPECT_EQ(tracker.suspects()[0].first, At(0));
  tracker.OnEvent(Ras(12, 13), {}, At(90));
  ASSERT_EQ(tracker.suspects().size(), 1u);
  EXPECT_EQ(tracker.suspects()[0].reports, 1) << "it has moved";
  EXPECT_EQ(tracker.ras().reports, 4);
  EXPECT_EQ(tracker.ras().largest, 4);
}

TEST(ReportTracker, AServiceThatDoesNotAnswer) {
  ReportTracker tracker;
  Event event;
  event.type = WireType(EventType::kRasReport);
  event.str = {{"error", "handshake: Connection timed out"}};
  event.num = {{"silences", 2}};
  tracker.OnEvent(event, {}, At(0));
  EXPECT_EQ(tracker.ras().silences, 2);
  EXPECT_FALSE(tracker.any());
  tracker.OnEvent(Ras(11, 12), {}, At(30));
  EXPECT_EQ(tracker.ras().silences, 0);
}

Event Flight(int32_t rank, int64_t index, const std::string& group, int64_t enqueued) {
  Event event;
  event.type = WireType(EventType::kFlightRecord);
  event.str = {{"group", group}, {"members", "0-3"}};
  event.num = {{"rank", rank}, {"index", index}, {"enqueued", enqueued}, {"completed", 3}};
  return event;
}

TEST(ReportTracker, ANewDumpReplacesTheOldOne) {
  ReportTracker tracker;
  tracker.OnEvent(Flight(1, 0, "a", 5), {7}, At(0));
  tracker.OnEvent(Flight(1, 1, "b", 6), {7}, At(0));
  ASSERT_EQ(tracker.flights().at(1).groups.size(), 2u) << "the rank of the dump, not the speaker";
  tracker.OnEvent(Flight(1, 0, "a", 9), {7}, At(60));
  ASSERT_EQ(tracker.flights().at(1).groups.size(), 1u);
  EXPECT_EQ(tracker.flights().at(1).groups[0].enqueued, 9);
}

TEST(ReportTracker, IsBoundedWhateverComes) {
  ReportTracker tracker;
  for (int32_t rank = 0; rank < 2000; ++rank) {
    for (int64_t index = 0; index < 100; ++index)
      tracker.OnEvent(Flight(rank, index, std::string(10'000, 'g'), INT64_MAX), {}, At(0));
  }
  EXPECT_LE(tracker.flights().size(), ReportTracker::kMaxRanks);
  for (const auto& [rank, flight] : tracker.flights()) {
    EXPECT_LE(flight.groups.size(), ReportTracker::kMaxGroups);
    EXPECT_LE(flight.groups[0].name.size(), 256u);
  }
  Event garbage;
  garbage.type = WireType(EventType::kRasReport);
  garbage.str = {{"text", std::string(30'000, '{')}};
  tracker.OnEvent(garbage, {}, At(0));
  EXPECT_EQ(tracker.ras().reports, 0) << "no report at all";
}

TEST(ReportTracker, IsTheSameWhenRestored) {
  ReportTracker tracker;
  tracker.OnEvent(Ras(11, 12), {}, At(0));
  tracker.OnEvent(Flight(1, 0, "a", 5), {}, At(0));
  ArchiveWriter writer;
  writer(tracker);
  const std::string bytes = writer.Take();
  ReportTracker restored;
  ArchiveReader reader(bytes);
  reader(restored);
  EXPECT_TRUE(reader.Complete());
  restored.OnEvent(Ras(11, 12), {}, At(30));
  EXPECT_EQ(restored.suspects().at(0).reports, 2);
  // Cut or changed anywhere, it is never more than refused.
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    ReportTracker other;
    ArchiveReader damaged_reader(damaged);
    damaged_reader(other);
    if (damaged_reader.ok()) other.OnEvent(Ras(11, 12), {}, At(30));
    EXPECT_LE(other.flights().size(), ReportTracker::kMaxRanks);
  }
}

}  // namespace
}  // namespace rankscope::windows
