// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// NCCL's word for who is which rank, held against the environment's: agreement, another order, and
// all the cases in which it cannot be held against anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "detectors/model/event_types.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ProcessKey kRoot{100, 1};
constexpr int kWorld = 4;  // two ranks on each of two nodes; ours are 0 and 1

struct Member {
  int64_t pid = 0;
  std::string host;
  int all_reduce = 12;
};

std::string Json(const std::vector<Member>& members) {
  std::string ranks;
  for (size_t i = 0; i < members.size(); ++i) {
    ranks += (i > 0 ? "," : "") + std::string(R"({"rank":)") + std::to_string(i) + R"(,"host":")" +
             members[i].host + R"(","pid":)" + std::to_string(members[i].pid) +
             R"(,"cuda_dev":0,"nvml_dev":)" + std::to_string(i % 2) +
             R"(,"status":{"init_state":0,"async_error":0},"collective_counts":{"Broadcast":0,)"
             R"("Reduce":0,"AllGather":0,"ReduceScatter":0,"AllReduce":)" +
             std::to_string(members[i].all_reduce) + "}}";
  }
  return R"({"nccl_version":"2.28.9","communicators_count":1,"communicators":[{"hash":"0xae",)"
         R"("secondary_hash":"0x1:0x2","size":)" +
         std::to_string(members.size()) + R"(,"ranks":[)" + ranks + R"(],"missing_ranks":[]}]})";
}

Event Report(std::string text) {
  Event event;
  event.type = WireType(EventType::kRasReport);
  event.process = {101, 2};
  event.str = {{"text", std::move(text)}};
  return event;
}

// Ranks 0 and 1 on this node, as processes 101 and 102 of the machine.
struct TwoOfFour {
  Tape tape;
  explicit TwoOfFour(std::vector<int32_t> inside = {}, int world = kWorld) {
    tape.Begin(0, {"torchrun", "train.py"}, world, kRoot);
    for (int rank = 0; rank < 2; ++rank) {
      ProcessStart start;
      start.key = {101 + rank, 2 + rank};
      start.parent = kRoot;
      start.comm = "python";
      start.argv = {"python", "train.py"};
      start.env = {{"RANK", std::to_string(rank)},
                   {"LOCAL_RANK", std::to_string(rank)},
                   {"WORLD_SIZE", std::to_string(world)}};
      start.complete = true;
      if (!inside.empty()) start.ns_pids = {start.key.pid, inside[static_cast<size_t>(rank)]};
      tape.Add(1, start);
    }
    tape.Train(2, 1, 20);
  }

  struct Answer {
    std::string explained;  // process 101
    proto::Verdict verdict;
    std::string warning;
  };
  Answer Of(std::string report, double until = 25) {
    tape.Add(10, Report(std::move(report)));
    tape.Finish(until);
    Engine engine({}, "n1");
    Play(tape, engine, 0, tape.size());
    Answer answer{engine.Explain(101), VerdictOf(engine), {}};
    for (const proto::Warning& warning : answer.verdict.warnings()) {
      if (warning.kind() == "ranks_renumbered") answer.warning = warning.text();
    }
    return answer;
  }
};

TEST(RasCheck, NcclAndTheEnvironmentAgree) {
  const auto answer = TwoOfFour().Of(Json({{101, "a"}, {102, "a"}, {101, "b"}, {104, "b"}}));
  EXPECT_THAT(answer.explained,
              HasSubstr("nccl ras: rank 0 of 4, process 101 on a, CUDA device 0, NVML device 0 of "
                        "those that it may open; the same rank\n"));
  EXPECT_EQ(answer.warning, "");
}

TEST(RasCheck, AnotherOrderIsAWarning) {
  const auto answer = TwoOfFour().Of(Json({{102, "a"}, {7, "b"}, {101, "a"}, {8, "b"}}));
  EXPECT_THAT(answer.explained, HasSubstr("nccl ras: rank 2 of 4, process 101 on a"));
  EXPECT_THAT(answer.explained, HasSubstr("; another rank\n"));
  EXPECT_THAT(answer.explained, HasSubstr("rank 0: by RANK")) << "the environment's stands";
  EXPECT_THAT(answer.warning, HasSubstr("rank 0 is 2, 1 is 0 in communicator 0xae"));
}

TEST(RasCheck, AProcessIsCalledByTheNumberThatItHasItself) {
  const auto answer = TwoOfFour({21, 22}).Of(Json({{21, "a"}, {22, "a"}, {101, "b"}, {102, "b"}}));
  EXPECT_THAT(answer.explained, HasSubstr("nccl ras: rank 0 of 4, process 21 on a"));
  EXPECT_EQ(answer.warning, "") << "101 and 102 are another node's";
}

TEST(RasCheck, TwoNodesWithTheSameNumbersCannotBeToldApart) {
  const auto answer = TwoOfFour({21, 22}).Of(Json({{22, "a"}, {21, "a"}, {21, "b"}, {22, "b"}}));
  EXPECT_THAT(answer.explained, HasSubstr("cannot be told"));
  EXPECT_EQ(answer.warning, "");
}

TEST(RasCheck, ACommunicatorOfSomeRanksHasNumbersOfItsOwn) {
  const auto answer = TwoOfFour().Of(Json({{102, "a"}, {101, "a"}}));
  EXPECT_THAT(answer.explained, HasSubstr("a communicator of some ranks has numbers of its own"));
  EXPECT_EQ(answer.warning, "");
}

TEST(RasCheck, AJobWithoutRasHasNoLine) {
  TwoOfFour job;
  job.tape.Finish(25);
  Engine engine({}, "n1");
  Play(job.tape, engine, 0, job.tape.size());
  EXPECT_THAT(engine.Explain(101), Not(HasSubstr("nccl ras")));
}

// The text names a process that lags by its number and its node. On two nodes a number may be that
// of two processes.
std::string Lag(std::string_view host, int64_t pid) {
  return "NCCL version 2.26.2 compiled with CUDA 12.6\n\nCommunicators... "
         "(0.00s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         2         1         2         2   RUNNING  MISMATCH\n\n"
         "Errors\n======\n\nWarnings\n========\n\n#0-0 (27) MISMATCH\n"
         "  Communicator ranks have different AllReduce operation counts\n"
         "  1 ranks have launched up to operation 12\n  Rank 1 has launched up to operation 11 -- "
         "GPU 1 managed by process " +
         std::to_string(pid) + " on node " + std::string(host) + "\n";
}

std::vector<int32_t> WhoHolds(TwoOfFour job, std::string_view host) {
  for (int second = 60; second <= 1200; second += 30) job.tape.Add(second, Report(Lag(host, 102)));
  job.tape.Finish(1200);
  const proto::Verdict verdict = JudgeTape(job.tape);
  EXPECT_EQ(verdict.code(), "C2");
  return {verdict.ranks().begin(), verdict.ranks().end()};
}

TEST(RasCheck, ANumberOfAnotherNodesProcessIsNobodyHere) {
  EXPECT_EQ(WhoHolds(TwoOfFour({}, 2), "a"), std::vector<int32_t>{1}) << "all ranks are here";
  EXPECT_TRUE(WhoHolds(TwoOfFour(), "b").empty());
  TwoOfFour known;  // which host is ours
  known.tape.Add(10, Report(Json({{101, "a"}, {102, "a"}, {102, "b"}, {104, "b"}})));
  TwoOfFour other = known;
  EXPECT_EQ(WhoHolds(std::move(known), "a"), std::vector<int32_t>{1});
  EXPECT_TRUE(WhoHolds(std::move(other), "b").empty());
}

}  // namespace
}  // namespace rankscope::engine
