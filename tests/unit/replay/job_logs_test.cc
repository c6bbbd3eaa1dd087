// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Several ranks' logs judged as one job, in the layouts that launchers leave behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "detectors/document/verdict_json.h"
#include "exporter/replay/log_file.h"
#include "exporter/replay/log_file_names.h"
#include "exporter/replay/log_file_set.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// One job's folder of logs.
class JobLogs : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / name).parent_path());
    dir_.Write(name, text);
  }
  proto::Verdict Judge(std::optional<int> exit_code = std::nullopt) {
    const std::string path = dir_.path();
    const auto files = LogFilesOf(std::span(&path, 1));
    EXPECT_TRUE(files);
    const auto judged = JudgeJobLogs(*files, exit_code);
    if (!judged) {
      ADD_FAILURE() << judged.error();
      return {};
    }
    unreadable_ = judged->unreadable;
    SCOPED_TRACE(VerdictToText(judged->verdict));
    return judged->verdict;
  }
  static std::string Implied(const proto::Verdict& verdict) {
    std::string text;
    for (const auto& implication : verdict.implies()) text += implication.text() + "\n";
    return text;
  }
  static std::vector<int> Ranks(const proto::Verdict& verdict) {
    return {verdict.ranks().begin(), verdict.ranks().end()};
  }
  static bool Chained(const proto::Verdict& verdict, proto::Cause::Role role,
                      const std::string& text) {
    for (const auto& link : verdict.cause_chain()) {
      if (link.role() != role) continue;
      const auto& shown = verdict.shows(static_cast<int>(link.evidence()));
      if ((shown.text() + shown.cite().log().line()).find(text) != std::string::npos) return true;
    }
    return false;
  }

  TempDir dir_;
  std::string unreadable_;
};

std::string ImportFails(const std::string& module, const std::string& stamp = {}) {
  return stamp +
         "Traceback (most recent call last):\n  File \"/home/w/pretrain.py\", line 7, in "
         "<module>\n    import " +
         module + "\nModuleNotFoundError: No module named '" + module + "'\n";
}

const char kReset[] =
    "Traceback (most recent call last):\n"
    "  File \"/home/w/pretrain.py\", line 61, in <module>\n"
    "    dist.barrier()\n"
    "  File \"/opt/py/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line "
    "3938, in barrier\n"
    "    work.wait()\n"
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
    "[10.3.0.4]:23401\n";

std::string Steps(int from, int to, const std::string& before = {}) {
  std::string text;
  for (int step = from; step <= to; ++step) {
    char line[96];
    std::snprintf(line, sizeof line, "step %d loss %.4f lr 0.0003 step_time 0.412s\n", step,
                  0.5 + 3.0 / (1 + 0.1 * step));
    text += before + line;
  }
  return text;
}

TEST_F(JobLogs, OneRankCannotImportAndTheOthersLoseIt) {
  Write("rank_0.log", kReset);
  Write("rank_1.log", kReset);
  Write("rank_2.log", ImportFails("apexx"));
  Write("rank_3.log", kReset);
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.code(), "A1");
  EXPECT_EQ(verdict.exception_type(), "ModuleNotFoundError");
  EXPECT_THAT(Ranks(verdict), ElementsAre(2));
  EXPECT_EQ(verdict.localization().scope(), "rank");
  EXPECT_THAT(Implied(verdict),
              HasSubstr("of the logs of 4 ranks, only that of rank 2 reports it"));
  EXPECT_THAT(Implied(verdict), HasSubstr("ranks 0, 1, 3 report a consequence"));
  EXPECT_TRUE(Chained(verdict, proto::Cause::ROOT, "apexx"));
  EXPECT_TRUE(Chained(verdict, proto::Cause::CASCADE, "Connection closed by peer"));
}

TEST_F(JobLogs, AllRanksRaiseTheSame) {
  for (int rank = 0; rank < 4; ++rank)
    Write("rank" + std::to_string(rank) + ".out", ImportFails("apexx"));
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.code(), "A1");
  EXPECT_THAT(Ranks(verdict), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(verdict.localization().scope(), "job");
  EXPECT_THAT(Implied(verdict), HasSubstr("the logs of all 4 ranks report it"));
}

const char kTimeout[] =
    "[2026-04-05 10:41:%02d,120] INFO waiting\n"
    "[rank%d]:[E405 10:41:%02d.551 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, "
    "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n";

std::string TimesOut(int rank, int second) {
  char text[512];
  std::snprintf(text, sizeof text, kTimeout, second, rank, second, rank);
  return text;
}

TEST_F(JobLogs, OneRankIsOutOfMemoryAndTheOthersWait) {
  for (int rank = 0; rank < 4; ++rank) {
    std::string text = Steps(1, 40, "[2026-04-05 10:30:10,120] ");
    if (rank == 1) {
      text +=
          "[2026-04-05 10:31:00,400] step begins\nTraceback (most recent call last):\n  File "
          "\"/home/w/pretrain.py\", line 88, in <module>\n    loss.backward()\n"
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a "
          "total capacity of 39.39 GiB of which 1.06 GiB is free.\n";
    } else {
      text += TimesOut(rank, 5 + rank);
    }
    Write("rank_" + std::to_string(rank) + ".log", text);
  }
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.code(), "B1");
  EXPECT_THAT(Ranks(verdict), ElementsAre(1));
  EXPECT_THAT(Implied(verdict), HasSubstr("rank 1 printed it at 10:31:00"));
}

TEST_F(JobLogs, TheFirstByPrintedTimeIsTheOneToName) {
  const auto fails = [](const char* time, const char* what) {
    return std::string("2026-04-05 ") + time + ",120 - INFO - loading\n" +
           "Traceback (most recent call last):\n  File \"/home/w/data.py\", line 9, in "
           "__getitem__\n    return self.rows[i]\n" +
           what + "\n";
  };
  Write("rank_0.log", fails("10:05:40", "IndexError: list index out of range"));
  Write("rank_1.log", fails("10:05:02", "KeyError: 'input_ids'"));
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.exception_type(), "KeyError");
  EXPECT_THAT(Ranks(verdict), ElementsAre(1));
  EXPECT_THAT(Implied(verdict), HasSubstr("rank 1 printed it at 10:05:02"));
}

TEST_F(JobLogs, ARankThatStoppedBeforeTheOthersIsASuspect) {
  for (int rank = 0; rank < 4; ++rank)
    Write("rank_" + std::to_string(rank) + ".log", Steps(1, rank == 3 ? 57 : 60));
  const proto::Verdict verdict = Judge(1);
  EXPECT_THAT(Ranks(verdict), ElementsAre(3));
  EXPECT_LE(verdict.ground(), proto::GROUND_LOOKALIKE);
  EXPECT_THAT(Implied(verdict), HasSubstr("rank 3 is suspect"));
}

TEST_F(JobLogs, NearTextHeldBackInABufferNamesNobody) {
  for (int rank = 0; rank < 4; ++rank) {
    std::string text = Steps(1, rank == 3 ? 57 : 60);
    if (rank == 3) text.resize(text.size() - 9);
    Write("rank_" + std::to_string(rank) + ".log", text);
  }
  const proto::Verdict verdict = Judge(1);
  EXPECT_THAT(Implied(verdict), Not(HasSubstr("suspect")));
}

TEST_F(JobLogs, AllRanksPrintTheSameStepsOfOneTraining) {
  for (int rank = 0; rank < 4; ++rank)
    Write("rank_" + std::to_string(rank) + ".log", Steps(1, 90) + "Training completed\n");
  const proto::Verdict verdict = Judge(0);
  EXPECT_EQ(verdict.code(), "G1");
  EXPECT_EQ(verdict.attempts_size(), 0) << "the second file is no second attempt";
}

TEST_F(JobLogs, NearOneLogUnderSeveralNamesIsOneLog) {
  for (int rank = 0; rank < 3; ++rank) {
    Write("rank_" + std::to_string(rank) + ".log",
          "2026-04-05 10:05:02,120 - INFO - loading\n" + ImportFails("apexx"));
  }
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.code(), "A1");
  EXPECT_THAT(Ranks(verdict), ElementsAre()) << "a copied file does not say whose it is";
  EXPECT_THAT(VerdictToJson(verdict), HasSubstr("the same bytes as"));
}

TEST_F(JobLogs, NearANodesFileHoldsSeveralRanks) {
  // srun --output=slurm-%j_%t.out with one torchrun per node: the number is the node's.
  for (int node = 0; node < 2; ++node) {
    std::string text;
    for (int local = 0; local < 4; ++local) {
      const int rank = node * 4 + local;
      const std::string prefix = "[rank" + std::to_string(rank) + "]: ";
      text += rank == 6 ? prefix + "Traceback (most recent call last):\n" + prefix +
                              "  File \"/home/w/pretrain.py\", line 7, in <module>\n" + prefix +
                              "    x = table[key]\n" + prefix + "KeyError: 'weights'\n"
                        : prefix + "waiting for the others\n";
    }
    Write("slurm-4411_" + std::to_string(node) + ".out", text);
  }
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.exception_type(), "KeyError");
  EXPECT_THAT(Ranks(verdict), ElementsAre(6));
}

TEST_F(JobLogs, TorchrunsFoldersAreAttemptsAndLocalRanks) {
  for (const int attempt : {0, 1}) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::string at =
          "none_x1y2/attempt_" + std::to_string(attempt) + "/" + std::to_string(rank) + "/";
      Write(at + "stdout.log",
            attempt == 0 ? Steps(1, 20) : Steps(21, 120) + "Training completed\n");
      Write(at + "stderr.log", attempt == 0 && rank == 1 ? ImportFails("late_module") : "");
    }
  }
  const proto::Verdict verdict = Judge(0);
  EXPECT_EQ(verdict.code(), "G1");
  ASSERT_EQ(verdict.attempts_size(), 1);
  EXPECT_THAT(verdict.attempts(0).code(), AnyOf("A1", "X1"));
}

TEST_F(JobLogs, SruntasksOfOneNodeEach) {
  for (int task = 0; task < 3; ++task) {
    Write("slurm-8123_" + std::to_string(task) + ".out",
          task == 2 ? ImportFails("flash") : "ready\n");
    Write("slurm-8123_" + std::to_string(task) + ".err", "");
  }
  EXPECT_THAT(Ranks(Judge(1)), ElementsAre(2));
}

TEST_F(JobLogs, WhatCannotBeReadIsSaidAndTheOthersAreJudged) {
  Write("rank_0.log", "waiting\n");
  Write("rank_1.log", ImportFails("apexx"));
  const std::string files[] = {dir_ / "rank_0.log", dir_ / "rank_1.log", dir_ / "rank_2.log"};
  const auto judged = JudgeJobLogs(files, 1);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdict.code(), "A1");
  EXPECT_THAT(judged->unreadable, HasSubstr("rank_2.log: No such file"));
  EXPECT_THAT(VerdictToJson(judged->verdict), HasSubstr("not read: "));
}

TEST_F(JobLogs, AThousandFilesSideBySide) {
  for (int rank = 0; rank < 1000; ++rank) {
    Write("rank_" + std::to_string(rank) + ".log",
          rank == 617
              ? "2026-04-05 10:00:00,001 start\n" + ImportFails("apexx")
              : "2026-04-05 10:00:00,000 start\n2026-04-05 10:00:30,000 - ERROR - [../gloo/"
                "transport/tcp/pair.cc:534] Connection closed by peer [10.3.0." +
                    std::to_string(rank % 250) + "]:" + std::to_string(20000 + rank) + "\n");
  }
  const proto::Verdict verdict = Judge(1);
  EXPECT_EQ(verdict.code(), "A1");
  EXPECT_THAT(Ranks(verdict), ElementsAre(617));
}

TEST_F(JobLogs, AHoleIsSteppedOver) {
  Write("a.log", ImportFails("apexx"));
  ASSERT_EQ(truncate((dir_ / "a.log").c_str(), off_t{10} << 30), 0);
  const auto verdict = JudgeLog(dir_ / "a.log", 1);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->exception_type(), "ModuleNotFoundError");
  Write("nothing.log", "");
  ASSERT_EQ(truncate((dir_ / "nothing.log").c_str(), off_t{10} << 30), 0);
  const auto nothing = JudgeLog(dir_ / "nothing.log", std::nullopt);
  ASSERT_TRUE(nothing);
  EXPECT_THAT(VerdictToJson(*nothing), HasSubstr("there is no text"));
}

std::vector<int> RanksOf(std::vector<std::string> paths) {
  std::vector<int> ranks;
  for (const LogName& name : NameLogs(paths)) ranks.push_back(name.rank);
  return ranks;
}

TEST(NameLogs, RanksAsLaunchersAndPeopleWriteThem) {
  EXPECT_THAT(RanksOf({"rank_3.log"}), ElementsAre(3));
  EXPECT_THAT(RanksOf({"logs/rank-12.out"}), ElementsAre(12));
  EXPECT_THAT(RanksOf({"node2_rank7.log"}), ElementsAre(7));
  EXPECT_THAT(RanksOf({"train.global_rank=4.txt"}), ElementsAre(4));
  EXPECT_THAT(RanksOf({"rank_5/stdout.log"}), ElementsAre(5));
  EXPECT_THAT(RanksOf({"slurm-123_0.out", "slurm-123_1.out", "slurm-123_2.out"}),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(RanksOf({"w/task0.err", "w/task1.err", "w/task1.out"}), ElementsAre(0, 1, 1));
  EXPECT_THAT(RanksOf({"r/attempt_0/0/stderr.log", "r/attempt_0/1/stderr.log"}), ElementsAre(0, 1));
  EXPECT_THAT(RanksOf({"r/2/0/stdout.log"}), ElementsAre(0));
}

TEST(NameLogs, NearNumbersThatAreNoRanks) {
  EXPECT_THAT(RanksOf({"train_3.log"}), ElementsAre(-1)) << "a lone number";
  EXPECT_THAT(RanksOf({"slurm-4411.out", "slurm-4412.out"}), ElementsAre(-1, -1)) << "job ids";
  EXPECT_THAT(RanksOf({"run_2026.log", "run_2027.log"}), ElementsAre(-1, -1));
  EXPECT_THAT(RanksOf({"slurm-9-gpu0.out", "slurm-9-gpu1.out"}), ElementsAre(-1, -1)) << "hosts";
  EXPECT_THAT(RanksOf({"node_rank_1.log"}), ElementsAre(-1));
  EXPECT_THAT(RanksOf({"local_rank_1.log"}), ElementsAre(-1));
  EXPECT_THAT(RanksOf({"frank_3.log"}), ElementsAre(-1));
  EXPECT_THAT(RanksOf({"a/attempt_0/0/stderr.log", "b/attempt_0/0/stderr.log"}),
              ElementsAre(-1, -1))
      << "two nodes' launchers";
  EXPECT_THAT(RanksOf({"log_1.txt", "log_2.txt"}), ElementsAre(-1, -1)) << "ranks begin at 0";
}

}  // namespace
}  // namespace rankscope::replay
