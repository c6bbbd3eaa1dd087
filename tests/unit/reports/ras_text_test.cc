// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "detectors/reports/ras_report.h"
#include "tests/unit/reports/ras_samples.h"

namespace rankscope::reports {
namespace {

const std::string kTail = "\nErrors\n======\n\n";

TEST(RasText, AHealthyJob) {
  const RasReport report = ReadRas(
      kRasHeader + "    0         8         4         1         4        32   RUNNING      OK\n" +
      kTail + "Warnings\n========\n\n");
  EXPECT_FALSE(report.json);
  EXPECT_EQ(report.version, "2.26.2");
  EXPECT_EQ(report.nodes, 4);
  EXPECT_EQ(report.processes, 32);
  EXPECT_EQ(report.gpus, 32);
  EXPECT_EQ(report.collection_seconds, 2.05);
  EXPECT_EQ(report.communicators_told, 8);
  ASSERT_EQ(report.groups.size(), 1u);
  EXPECT_EQ(report.groups[0].status, "RUNNING");
  EXPECT_EQ(report.groups[0].errors, "OK");
  EXPECT_TRUE(report.communicators.empty());
  EXPECT_FALSE(report.cut);
  EXPECT_EQ(report.not_understood, 0);
}

// 2.24 and 2.25 count all operations together; since 2.26 each kind has its own count.
TEST(RasText, CountsOfTwoReleases) {
  for (const bool old : {true, false}) {
    const RasReport report = ReadRas(
        kRasHeader +
        "    0         1         4         8        32        32   RUNNING  MISMATCH\n" + kTail +
        "Warnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
        "  Communicator ranks have different " +
        (old ? "collective" : "AllGather") +
        " operation counts\n"
        "  29 ranks have launched up to operation 6650\n"
        "  2 ranks have launched up to operation 6649\n"
        "  Rank 4 -- GPU 4 managed by process 483076 on node 172.16.64.210\n"
        "  Rank 7 -- GPU 0 (NVML 7) managed by process 483079 on node 172.16.64.210\n"
        "  Rank 9 has launched up to operation 6648 -- GPU 1 managed by process 99 on node "
        "172.16.64.211\n");
    ASSERT_EQ(report.communicators.size(), 1u);
    const RasCommunicator& world = report.communicators[0];
    const size_t operation = old ? kRasAllOperations : 2;
    EXPECT_EQ(world.id, "27a079b828ff1a75");
    EXPECT_EQ(world.size, 32);
    EXPECT_TRUE(world.mismatch);
    ASSERT_EQ(world.counts.size(), 3u);
    EXPECT_EQ(world.counts[0].operation, operation);
    EXPECT_EQ(world.counts[0].launched, 6650);
    EXPECT_EQ(world.counts[0].ranks, 29);
    EXPECT_EQ(world.counts[2].launched, 6648);
    EXPECT_EQ(world.counts[2].ranks, 1);
    ASSERT_EQ(world.ranks.size(), 3u);
    EXPECT_EQ(world.ranks[0].pid, 483076);
    EXPECT_EQ(world.ranks[0].launched[operation], 6649);
    EXPECT_EQ(world.ranks[1].nvml_device, 7);
    EXPECT_EQ(world.ranks[1].cuda_device, 0);
    EXPECT_EQ(world.ranks[2].rank, 9);
    EXPECT_EQ(world.ranks[2].launched[operation], 6648);
    EXPECT_EQ(report.not_understood, 0);
  }
}

TEST(RasText, ARankThatHasLaunchedNothing) {
  const RasReport report = ReadRas(
      kRasHeader + "    0         1         1         2         2         2   RUNNING  MISMATCH\n" +
      kTail +
      "Warnings\n========\n\n#0-0 (27) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  Rank 0 has launched up to operation 5 -- GPU 0 managed by process 11 on node 10.0.0.1\n"
      "  Rank 1 has not launched any operations -- GPU 1 managed by process 12 on node 10.0.0.1\n");
  const RasCommunicator& world = report.communicators.at(0);
  EXPECT_EQ(world.ranks.at(0).launched[4], 5);
  EXPECT_EQ(world.ranks.at(1).launched[4], 0);
}

TEST(RasText, TheDeadAndTheMissing) {
  const RasReport report = ReadRas(
      kRasHeader +
      "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE,MISMATCH\n" +
      kTail +
      "INCOMPLETE\n  Missing communicator data from 1 job process\n"
      "  Process 3487985 on node 172.16.64.213 managing GPU 6\n\n"
      "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 3487984 on node 172.16.64.213 managing GPUs 5,6 (NVML 1,2)\n\n"
      "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 2 ranks\n"
      "  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213\n"
      "  Rank 22 -- GPU 6 managed by process 3487985 on node 172.16.64.213\n\n"
      "Warnings\n========\n\nTIMEOUT\n  Encountered 2 communication timeouts while gathering "
      "communicator data\n\n");
  EXPECT_EQ(report.dead_told, 1);
  EXPECT_EQ(report.unresponsive_told, 1);
  EXPECT_EQ(report.timeouts, 2);
  ASSERT_EQ(report.dead.size(), 1u);
  EXPECT_EQ(report.dead[0].pid, 3487984);
  EXPECT_EQ(report.dead[0].host, "172.16.64.213");
  EXPECT_EQ(report.dead[0].gpus, "5,6 (NVML 1,2)");
  const RasCommunicator& world = report.communicators.at(0);
  EXPECT_TRUE(world.incomplete);
  EXPECT_EQ(world.missing, 2);
  EXPECT_EQ(world.reported, 30);
  ASSERT_EQ(world.ranks.size(), 2u);
  EXPECT_EQ(world.ranks[0].state, RasRank::State::kDead);
  EXPECT_EQ(world.ranks[1].state, RasRank::State::kUnresponsive);
  EXPECT_EQ(report.not_understood, 0);
}

// 2.24 names the missing ranks by number alone.
TEST(RasText, MissingRanksByNumber) {
  const RasReport report = ReadRas(
      kRasHeader +
      "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n" + kTail +
      "#0-0 (cf26) INCOMPLETE\n  Missing communicator data from 2 ranks\n  The missing ranks: "
      "3,21\n\nWarnings\n========\n");
  const RasCommunicator& world = report.communicators.at(0);
  ASSERT_EQ(world.ranks.size(), 2u);
  EXPECT_EQ(world.ranks[1].rank, 21);
  EXPECT_EQ(world.ranks[1].state, RasRank::State::kUnresponsive);
}

TEST(RasText, StatesWhileACommunicatorEnds) {
  const RasReport report = ReadRas(
      kRasHeader +
      "    0         1         4       1-2        32        32  FINALIZE  MISMATCH\n"
      "    1         1         4         1         4         4      INIT      OK\n" +
      kTail +
      "Warnings\n========\n\n#0-0 (9e17999afaa87dbb) MISMATCH\n  Communicator ranks have different "
      "status\n"
      "  26 ranks have status UNKNOWN\n  4 ranks have status RUNNING\n"
      "  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210\n"
      "  Rank 4 has status FINALIZE -- GPU 4 managed by process 507289 on node 172.16.64.210\n");
  const RasCommunicator& old = report.communicators.at(0);
  EXPECT_EQ(old.ranks.at(0).state, RasRank::State::kRunning);
  EXPECT_EQ(old.ranks.at(1).state, RasRank::State::kFinalising);
  EXPECT_TRUE(old.counts.empty());
  EXPECT_EQ(report.groups.at(1).status, "INIT");
}

TEST(RasText, AsynchronousErrors) {
  const RasReport report = ReadRas(
      kRasHeader + "    0         1         1         8         8         8   RUNNING   ERROR\n" +
      kTail +
      "#0-0 (12) ERROR\n  Asynchronous error on 1 rank\n"
      "  Rank 3 reported Remote process error -- GPU 3 managed by process 31 on node "
      "10.0.0.1\n\nWarnings\n========\n");
  EXPECT_TRUE(report.communicators.at(0).failed);
  EXPECT_EQ(report.communicators.at(0).ranks.at(0).error, "Remote process error");
}

TEST(RasText, NoCommunicatorIsAnAnswer) {
  const RasReport report = ReadRas(
      "NCCL version 2.27.3 compiled with CUDA 12.9\nCommunicators... (0.00s)\n=============\n\n"
      "No communicator data collected!\n" +
      kTail + "Warnings\n========\n\n");
  EXPECT_TRUE(report.none);
}

TEST(RasText, ACutAnswerSaysSo) {
  EXPECT_TRUE(ReadRas(kRasHeader +
                      "    0         8         4         1         4        32   RUNNING      OK\n")
                  .cut);
}

TEST(RasText, AStrangersTextIsNoReport) {
  const RasReport report = ReadRas("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html>\n");
  EXPECT_TRUE(report.version.empty());
  EXPECT_TRUE(report.communicators.empty());
  EXPECT_GT(report.not_understood, 0);
}

}  // namespace
}  // namespace rankscope::reports
