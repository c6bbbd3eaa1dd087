// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace rankscope::reports {
namespace {

std::string File(const std::string& name) {
  std::ifstream file(std::string(RANKSCOPE_SOURCE_DIR) + "/tests/fixtures/flight_recorder/" + name,
                     std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

FlightDump Read(const std::string& bytes) {
  auto read = ReadFlightDump(bytes);
  EXPECT_TRUE(read) << (read ? "" : read.error());
  return read ? *read : FlightDump{};
}

TEST(FlightRecorder, ARankThatWaits) {
  const FlightDump dump = Read(File("lag_rank_0"));
  EXPECT_EQ(dump.version, "2.4");
  EXPECT_EQ(dump.nccl_version, "2.21.5");
  ASSERT_EQ(dump.groups.size(), 1u);
  const FlightGroup& world = dump.groups[0];
  EXPECT_EQ(world.name, "0");
  EXPECT_EQ(world.description, "default_pg");
  EXPECT_THAT(world.ranks, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(world.last_enqueued, 4522);
  EXPECT_EQ(world.last_completed, 4520);
  EXPECT_EQ(world.last_started, -1);
  ASSERT_TRUE(world.has_pending);
  EXPECT_EQ(world.pending.sequence, 4521);
  EXPECT_EQ(world.pending.name, "all_reduce");
  EXPECT_EQ(world.pending.sizes, "[[4096]]");
  EXPECT_EQ(world.pending.dtype, "Float");
  EXPECT_EQ(world.pending.caller, "/job/train.py:118 train_step");  // not torch's own frame
}

TEST(FlightRecorder, ARankThatHasNothingInFlight) {
  const FlightDump dump = Read(File("lag_rank_2"));
  EXPECT_EQ(dump.groups.at(0).last_enqueued, 4520);
  EXPECT_FALSE(dump.groups.at(0).has_pending);
}

TEST(FlightRecorder, PickleOfAnyProtocolAndJsonSayTheSame) {
  const FlightDump pickled = Read(File("lag_rank_1"));
  for (const char* name : {"lag_rank_0.protocol4", "lag_rank_1.json"}) {
    const FlightDump dump = Read(File(name));
    EXPECT_EQ(dump.groups.at(0).last_enqueued, pickled.groups.at(0).last_enqueued) << name;
    EXPECT_EQ(dump.groups.at(0).last_completed, pickled.groups.at(0).last_completed);
    EXPECT_EQ(dump.groups.at(0).pending.sequence, pickled.groups.at(0).pending.sequence);
    EXPECT_EQ(dump.groups.at(0).ranks, pickled.groups.at(0).ranks);
  }
}

// The status is keyed by a number of the process, the configuration by the group's name.
TEST(FlightRecorder, GroupsAreJoinedThroughTheirEntries) {
  const FlightDump dump = Read(R"({"version": "2.9", "comm_lib_version": "2.27.3",
    "pg_config": {"8": {"name": "8", "desc": "tp", "ranks": "[2, 3]"}, "0": {"name": "0", "ranks": "[0, 1, 2, 3]"}},
    "pg_status": {"0": {"last_enqueued_collective": 5, "last_completed_collective": 5},
                  "3": {"last_enqueued_collective": 90, "last_completed_collective": 88}},
    "entries": [{"pg_id": 3, "process_group": ["8", "tp"], "collective_seq_id": 89, "state": "started", "profiling_name": "nccl:_all_gather_base", "is_p2p": false},
                {"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 5, "state": "completed"},
                {"pg_id": 3, "process_group": ["8", "tp"], "collective_seq_id": 0, "p2p_seq_id": 4, "state": "scheduled", "is_p2p": true}]})");
  EXPECT_EQ(dump.nccl_version, "2.27.3");
  ASSERT_EQ(dump.groups.size(), 2u);
  const FlightGroup& tensor = dump.groups[1];
  EXPECT_EQ(tensor.name, "8");
  EXPECT_THAT(tensor.ranks, testing::ElementsAre(2, 3));
  EXPECT_EQ(tensor.last_enqueued, 90);
  EXPECT_EQ(tensor.last_completed, 88);
  EXPECT_EQ(tensor.pending.sequence, 89);
  EXPECT_EQ(tensor.entries, 2);
  EXPECT_EQ(dump.groups[0].last_completed, 5);
}

std::string Exchanges(std::string_view entries) {
  return R"({"version": "2.10", "pg_config": {"2": {"name": "2", "desc": "pp", "ranks": "[4, 5, 6, 7]"}}, "entries": [)" +
         std::string(entries) + "]}";
}

std::string Entry(int number, std::string_view name, std::string_view state) {
  return R"({"pg_id": 1, "process_group": ["2", "pp"], "is_p2p": true, "time_created_ns": )" +
         std::to_string(1000 + number) + R"(, "p2p_seq_id": )" + std::to_string(number) +
         R"(, "profiling_name": "nccl:)" + std::string(name) + R"(", "state": ")" +
         std::string(state) + "\"}";
}

// A rank runs ahead of its GPU: what it has enqueued since waits behind the first.
TEST(FlightRecorder, TheOldestExchangeIsWhatARankWaitsFor) {
  const FlightDump dump =
      Read(Exchanges(Entry(6, "recv 2<-1", "completed") + "," + Entry(7, "recv 2<-1", "scheduled") +
                     "," + Entry(8, "send 2->3", "scheduled")));
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_THAT(dump.groups[0].peers, testing::ElementsAre(5));
  EXPECT_EQ(dump.groups[0].exchange.sequence, 7);
  EXPECT_EQ(dump.groups[0].exchange.created_ns, 1007);
  EXPECT_EQ(dump.groups[0].last_enqueued, -1) << "sends and receives are numbered by themselves";
}

// Of a batch only the last entry is told to be complete; before PyTorch 2.5 that had a number of
// its own.
TEST(FlightRecorder, EntriesOfABatchThatCompletedAreNotWaitedFor) {
  for (const int last : {7, 8}) {
    const FlightDump dump = Read(Exchanges(Entry(6, "recv 2<-1", "scheduled") + "," +
                                           Entry(7, "send 2->3", "scheduled") + "," +
                                           Entry(last, "coalesced", "completed")));
    if (last == 7) {
      EXPECT_THAT(dump.groups[0].peers, testing::ElementsAre(5)) << "6 is none of the batch";
    } else {
      EXPECT_THAT(dump.groups[0].peers, testing::IsEmpty());
    }
  }
}

// Each pair of ranks has a stream of its own.
TEST(FlightRecorder, WhatALaterExchangeOvertookIsComplete) {
  const std::string first = Entry(6, "send 2->1", "scheduled") + ",";
  const FlightDump same = Read(Exchanges(first + Entry(7, "send 2->1", "completed")));
  EXPECT_THAT(same.groups[0].peers, testing::IsEmpty());
  const FlightDump other = Read(Exchanges(first + Entry(7, "send 2->3", "completed")));
  EXPECT_THAT(other.groups[0].peers, testing::ElementsAre(5));
}

// Of 1.x: groups by number, sequence numbers without kinds.
TEST(FlightRecorder, AnOldDump) {
  const FlightDump dump = Read(R"({"version": "1.5", "entries": [
    {"pg_id": 0, "seq_id": 7, "state": "completed", "profiling_name": "nccl:all_reduce"},
    {"pg_id": 0, "seq_id": 8, "state": "scheduled", "profiling_name": "nccl:all_reduce"}]})");
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_EQ(dump.groups[0].last_enqueued, 8);
  EXPECT_EQ(dump.groups[0].last_completed, 7);
}

TEST(FlightRecorder, WhatWouldRunIsRefused) {
  const std::string bytes = File("hostile");
  const auto read = ReadFlightDump(bytes);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error(), testing::HasSubstr("does more than hold data"));
}

TEST(FlightRecorder, OtherDataIsNoDump) {
  EXPECT_FALSE(ReadFlightDump(R"({"step": 4})"));
  EXPECT_FALSE(ReadFlightDump("loss 0.3"));
  EXPECT_FALSE(ReadFlightDump(std::string("\x80\x02].")));
}

TEST(FlightRecorder, NoPrefixOfADumpIsTrouble) {
  const std::string bytes = File("lag_rank_0");
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_FALSE(ReadFlightDump(std::string_view(bytes).substr(0, size)));
  }
}

}  // namespace
}  // namespace rankscope::reports
