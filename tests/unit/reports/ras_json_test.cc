// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "detectors/reports/ras_report.h"

namespace rankscope::reports {
namespace {

std::string Rank(int rank, int all_reduce, int async = 0, const char* flags = "") {
  return R"({"rank": )" + std::to_string(rank) + R"(, "host": "10.0.0.4", "pid": )" +
         std::to_string(5000 + rank) + R"(, "cuda_dev": 0, "nvml_dev": )" + std::to_string(rank) +
         R"(, "status": {"init_state": 0, "async_error": )" + std::to_string(async) + flags +
         R"(}, "collective_counts": {"Broadcast": 3, "Reduce": 0, "AllGather": 0, )" +
         R"("ReduceScatter": 0, "AllReduce": )" + std::to_string(all_reduce) + "}}";
}

std::string Missing(int rank, bool unresponsive, bool dead) {
  return R"({"rank": )" + std::to_string(rank) + R"(, "host": "10.0.0.5", "pid": 77, "cuda_dev": 1,
    "nvml_dev": 1, "status": {"unresponsive": )" +
         (unresponsive ? "true" : "false") + R"(, "considered_dead": )" +
         (dead ? "true" : "false") + "}}";
}

std::string Report(const std::string& ranks, const std::string& missing, int size) {
  return R"({"nccl_version": "2.29.1", "cuda_runtime_version": 13000, "timestamp": "2026-11-20 13:06:53",
  "communicators_count": 1, "communicators": [{"hash": "0xae94", "secondary_hash": "0xb7:0xb8", "size": )" +
         std::to_string(size) + R"(, "ranks": [)" + ranks + R"(], "missing_ranks": [)" + missing +
         R"(]}], "ras": {"collection_time_sec": 0.25, "timeouts_count": 2}})";
}

TEST(RasJson, EveryRankIsRead) {
  const RasReport report = ReadRas(Report(Rank(0, 7) + "," + Rank(1, 7), "", 2));
  EXPECT_TRUE(report.json);
  EXPECT_EQ(report.version, "2.29.1");
  EXPECT_EQ(report.collection_seconds, 0.25);
  EXPECT_EQ(report.timeouts, 2);
  ASSERT_EQ(report.communicators.size(), 1u);
  const RasCommunicator& world = report.communicators[0];
  EXPECT_EQ(world.id, "0xae94/0xb7:0xb8");
  EXPECT_EQ(world.size, 2);
  EXPECT_EQ(world.reported, 2);
  EXPECT_FALSE(world.mismatch);
  EXPECT_EQ(world.ranks[1].pid, 5001);
  EXPECT_EQ(world.ranks[1].nvml_device, 1);
  EXPECT_EQ(world.ranks[1].launched[4], 7);
  EXPECT_EQ(world.ranks[1].launched[kRasAllOperations], 10);
  EXPECT_EQ(world.ranks[1].state, RasRank::State::kRunning);
}

TEST(RasJson, RanksThatDisagreeAreAMismatch) {
  const RasReport report = ReadRas(Report(Rank(0, 7) + "," + Rank(1, 6), "", 2));
  EXPECT_TRUE(report.communicators[0].mismatch);
  EXPECT_FALSE(report.communicators[0].incomplete);
}

TEST(RasJson, StatesAndErrors) {
  const RasReport report = ReadRas(Report(
      Rank(0, 7, 6) + "," + Rank(1, 7, 0, R"(, "abort_flag": true)"),
      Missing(2, true, false) + "," + Missing(3, true, true) + "," + Missing(4, false, false), 5));
  const RasCommunicator& world = report.communicators[0];
  EXPECT_EQ(world.ranks[0].error, "remote error");
  EXPECT_EQ(world.ranks[1].state, RasRank::State::kAborted);
  EXPECT_EQ(world.ranks[2].state, RasRank::State::kUnresponsive);
  EXPECT_EQ(world.ranks[3].state, RasRank::State::kDead);
  EXPECT_EQ(world.ranks[4].state, RasRank::State::kNoMember);
  EXPECT_EQ(world.missing, 3);
  EXPECT_TRUE(world.failed);
  EXPECT_TRUE(world.incomplete);
}

// As 2.28.9 prints it: a comma is missing, wherever.
TEST(RasJson, AForgottenCommaIsRepaired) {
  const std::string whole = Report(Rank(0, 7) + "," + Rank(1, 6), Missing(2, true, false), 3);
  const RasReport expected = ReadRas(whole);
  int repaired = 0;
  for (size_t at = whole.find(','); at != std::string::npos; at = whole.find(',', at + 1)) {
    std::string broken = whole;
    broken[at] = ' ';
    const RasReport report = ReadRas(broken);
    EXPECT_EQ(report.repaired, 1) << at;
    EXPECT_EQ(report.version, expected.version);
    ASSERT_EQ(report.communicators.size(), 1u);
    EXPECT_EQ(report.communicators[0].ranks.size(), 3u);
    EXPECT_EQ(report.communicators[0].ranks[1].launched,
              expected.communicators[0].ranks[1].launched);
    EXPECT_EQ(report.timeouts, 2);
    ++repaired;
  }
  EXPECT_GT(repaired, 30);
}

TEST(RasJson, NoCommunicatorIsAnAnswer) {
  const RasReport report =
      ReadRas(R"({"nccl_version": "2.29.1", "communicators_count": 0, "communicators": [
  ], "ras": {"collection_time_sec": 0.000, "timeouts_count": 0}})");
  EXPECT_TRUE(report.none);
  EXPECT_FALSE(report.cut);
}

TEST(RasJson, ACutAnswerSaysSo) {
  const std::string whole = Report(Rank(0, 7) + "," + Rank(1, 6), "", 2);
  const RasReport report = ReadRas(std::string_view(whole).substr(0, whole.size() / 2));
  EXPECT_TRUE(report.cut);
  EXPECT_FALSE(report.none);
}

TEST(RasVersionTest, ThreeNumbers) {
  EXPECT_EQ(RasVersion("2.28.9"), (std::array<int, 3>{2, 28, 9}));
  EXPECT_EQ(RasVersion("2.26.2+cuda12.2"), (std::array<int, 3>{2, 26, 2}));
  EXPECT_EQ(RasVersion("2.28.3-rc1"), (std::array<int, 3>{2, 28, 3}));
  EXPECT_EQ(RasVersion("unknown"), std::nullopt);
}

}  // namespace
}  // namespace rankscope::reports
