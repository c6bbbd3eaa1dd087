// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/ras_numbers.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/reports/ras_samples.h"

namespace rankscope::reports {
namespace {

using State = RasState;

std::string Member(int rank, int pid, int reductions, const std::string& status) {
  return R"({"rank":)" + std::to_string(rank) + R"(,"host":"h","pid":)" + std::to_string(pid) +
         R"(,"cuda_dev":0,"nvml_dev":)" + std::to_string(pid % 8) + R"(,"status":{)" + status +
         R"(},"collective_counts":{"AllReduce":)" + std::to_string(reductions) + "}}";
}

RasNumbers OfJson(const std::string& communicators) {
  return NumbersOf(ReadRas(R"({"nccl_version":"2.28.9","communicators":[)" + communicators + "]}"));
}

constexpr char kFine[] = R"("init_state":0,"async_error":0)";

TEST(RasNumbers, ARankCountsOnceInItsWorstState) {
  const RasNumbers numbers =
      OfJson(R"({"hash":"w","size":3,"ranks":[)" + Member(0, 10, 50, kFine) + "," +
             Member(1, 11, 47, kFine) +
             R"(],"missing_ranks":[{"rank":2,"host":"h","pid":12,"nvml_dev":4,)"
             R"("status":{"unresponsive":true,"considered_dead":false}}]},)"
             R"({"hash":"p","size":2,"ranks":[)" +
             Member(0, 10, 3, kFine) + "," +
             Member(1, 11, 3, R"("init_state":0,"async_error":6,"abort_flag":true)") + "]}");
  EXPECT_EQ(numbers.of(State::kRunning), 1);
  EXPECT_EQ(numbers.of(State::kAborted), 1);
  EXPECT_EQ(numbers.of(State::kUnresponsive), 1);
  EXPECT_EQ(numbers.of(State::kDead), 0);
  EXPECT_EQ(numbers.errors, 1);
  EXPECT_EQ(numbers.lag, 3);
}

TEST(RasNumbers, RanksThatAreEqualDoNotLag) {
  const RasNumbers numbers = OfJson(R"({"hash":"w","size":2,"ranks":[)" + Member(0, 10, 50, kFine) +
                                    "," + Member(1, 11, 50, kFine) + "]}");
  EXPECT_EQ(numbers.lag, 0);
  EXPECT_EQ(numbers.errors, 0);
  EXPECT_EQ(numbers.of(State::kRunning), 2);
}

TEST(RasNumbers, OfTheTextWhoIsNotNamedIsLikeTheLargestGroup) {
  const RasNumbers fine =
      NumbersOf(ReadRas(
          kRasHeader + "    0         8         4         1         4        32   RUNNING      OK\n"
                       "\nErrors\n======\n\nWarnings\n========\n\n"));
  EXPECT_EQ(fine.of(State::kRunning), 32);
  EXPECT_EQ(fine.lag, 0);

  const RasNumbers init = NumbersOf(ReadRas(
      kRasHeader + "    0         1         4         8        32        32      INIT      OK\n"));
  EXPECT_EQ(init.of(State::kInitialising), 32);

  const RasNumbers lags = NumbersOf(
      ReadRas(kRasHeader +
              "    0         1         4         8        32        32   RUNNING  MISMATCH\n"
              "\nErrors\n======\n\nWarnings\n========\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
              "  Communicator ranks have different AllGather operation counts\n"
              "  31 ranks have launched up to operation 6650\n"
              "  Rank 9 has launched up to operation 6648 -- GPU 1 managed by process 99 on node "
              "172.16.64.211\n"));
  EXPECT_EQ(lags.of(State::kRunning), 32);
  EXPECT_EQ(lags.lag, 2);
}

TEST(RasNumbers, AProcessThatIsDeadIsOneRankAtLeast) {
  const RasNumbers numbers = NumbersOf(
      ReadRas(kRasHeader +
              "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE\n"
              "\nErrors\n======\n\nDEAD\n  1 job process is considered dead\n"
              "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
              "Warnings\n========\n\n"));
  EXPECT_EQ(numbers.of(State::kDead), 1);
  EXPECT_EQ(numbers.of(State::kRunning), 31);
}

TEST(RasNumbers, NothingIsNothing) {
  const RasNumbers numbers = NumbersOf(ReadRas(""));
  for (const int64_t count : numbers.ranks) EXPECT_EQ(count, 0);
}

}  // namespace
}  // namespace rankscope::reports
