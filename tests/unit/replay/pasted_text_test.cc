// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What people paste: the end of a log, or the lines of an error without what stood around them.
#include <gtest/gtest.h>

#include <string>

#include "detectors/document/verdict_json.h"
#include "exporter/replay/log_file.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;

proto::Verdict Judge(const std::string& text) {
  TempDir dir;
  dir.Write("a.log", text);
  const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
  EXPECT_TRUE(verdict);
  return verdict ? *verdict : proto::Verdict();
}

std::string Entry(int number, int rank, const std::string& second, const std::string& exit) {
  const std::string word = std::to_string(rank);
  return "[" + std::to_string(number) + "]:\n  time      : 2026-03-02_12:00:" + second +
         "\n  host      : n1\n  rank      : " + word + " (local_rank: " + word +
         ")\n  exitcode  : " + exit + " (pid: 10" + word +
         ")\n  error_file: <N/A>\n  traceback : To enable traceback see: "
         "https://pytorch.org/docs/stable/elastic/errors.html\n";
}

std::string Summary(const std::string& others, const std::string& root) {
  const std::string rule(60, '-'), end(60, '=');
  return end + "\ntrain.py FAILED\n" + rule + "\nFailures:\n" + others + rule +
         "\nRoot Cause (first observed failure):\n" + root + end + "\n";
}

std::string Ranks(const proto::Verdict& verdict) {
  std::string ranks;
  for (const int32_t rank : verdict.ranks()) ranks += std::to_string(rank) + " ";
  return ranks;
}

TEST(PastedSummary, NamesWhomTheLauncherSawFailFirst) {
  for (const char* exit : {"-6", "-9", "-11", "1"}) {
    const std::string others = Entry(1, 0, "15", exit) + Entry(2, 2, "15", exit);
    EXPECT_EQ(Ranks(Judge(Summary(others, Entry(0, 1, "15", exit)))), "1 ") << exit;
    EXPECT_EQ(Ranks(Judge(Summary(others, Entry(0, 1, "13", exit)))), "1 ") << exit;
    EXPECT_EQ(Ranks(Judge(Summary("  <NO_OTHER_FAILURES>\n", Entry(0, 3, "15", exit)))), "3 ")
        << exit;
  }
}

// With equal times the launcher's word is a hint: who raised before it is the first.
TEST(PastedSummary, IsOutrankedByWhatARankSaid) {
  const std::string raised =
      "[rank2]: Traceback (most recent call last):\n"
      "[rank2]:   File \"fit.py\", line 90, in <module>\n[rank2]:     main()\n"
      "[rank2]:   File \"fit.py\", line 71, in main\n[rank2]:     y = table[key]\n"
      "[rank2]: KeyError: 'mask'\n";
  const std::string others = Entry(1, 0, "15", "1") + Entry(2, 2, "15", "1");
  EXPECT_EQ(Ranks(Judge(raised + Summary(others, Entry(0, 1, "15", "1")))), "2 ");
}

std::string Shows(const proto::Verdict& verdict) {
  std::string text;
  for (const auto& evidence : verdict.shows()) text += evidence.text() + "\n";
  return text;
}

// A library that has come up ends no program.
TEST(PastedText, TellsWhatIsDoneByItsOwnWords) {
  constexpr std::string_view kDone = "reports that the program is done";
  std::string ready;
  for (int rank = 0; rank < 8; ++rank)
    ready += "n1:312:340 [" + std::to_string(rank) + "] NCCL INFO comm 0x55d0 rank " +
             std::to_string(rank) + " nranks 8 cudaDev 0 busId 8b000 - Init COMPLETE\n";
  EXPECT_EQ(Shows(Judge(ready)).find(kDone), std::string::npos);
  EXPECT_NE(Shows(Judge("loading\nAll jobs completed\n")).find(kDone), std::string::npos);
}

std::string Raised(int rank, const std::string& error) {
  const std::string who = "[rank" + std::to_string(rank) + "]: ";
  return who + "Traceback (most recent call last):\n" + who +
         "  File \"fit.py\", line 90, in <module>\n" + who + "    loss.backward()\n" + who +
         "RuntimeError: CUDA error: " + error + "\n";
}

std::string Xid(const std::string& code, const std::string& card = "0000:5d:00") {
  return "[811204.118220] NVRM: Xid (PCI:" + card + "): " + code + ", pid=412, name=python3, x\n";
}

std::string Asks(const proto::Verdict& verdict) {
  std::string text;
  for (const auto& open : verdict.cannot_decide()) text += open.question() + "\n";
  return text;
}

// The driver names a card, and the rank that felt it names itself.
TEST(PastedDriverLines, StandBesideTheRank) {
  const std::string ecc = "uncorrectable ECC error encountered";
  constexpr std::string_view kWho = "whether the GPU or the program is at fault";
  const proto::Verdict both = Judge(Raised(13, ecc) + "--- dmesg ---\n" + Xid("48") + Xid("45"));
  EXPECT_EQ(both.code(), "B2");
  EXPECT_EQ(Ranks(both), "13 ");
  ASSERT_EQ(both.gpus_size(), 1);
  EXPECT_EQ(both.gpus(0), "0000:5d:00");
  EXPECT_EQ(Asks(both).find(kWho), std::string::npos);
  const proto::Verdict lost = Judge(Raised(3, "unspecified launch failure") + Xid("79"));
  EXPECT_EQ(lost.code(), "B2");
  EXPECT_EQ(Ranks(lost), "3 ");
  // One of two may have met it as a consequence: nobody says which.
  const proto::Verdict two =
      Judge(Raised(3, "unspecified launch failure") + Raised(4, "unknown error") + Xid("79"));
  EXPECT_EQ(Ranks(two), "");
  // A rank whose card fails, among others that lost their peer.
  const proto::Verdict among = Judge(Raised(3, "unknown error") + Raised(4, ecc) + Xid("48"));
  EXPECT_EQ(Ranks(among), "4 ");
  // The driver alone: what a program can cause, too, stays open.
  EXPECT_NE(Asks(Judge(Raised(3, "unknown error") + Xid("119"))).find(kWho), std::string::npos);
}

TEST(PastedDriverLines, ANodesToolIsNoProcessOfTheRun) {
  const std::string shows = Shows(
      Judge(Raised(3, "unspecified launch failure") +
            "$ nvidia-smi\nUnable to determine the device handle for GPU0000:3B:00.0: Unknown "
            "Error\n" +
            Xid("79", "0000:3b:00")));
  EXPECT_NE(shows.find("nvidia-smi got no answer from the GPU 0000:3b:00"), std::string::npos)
      << shows;
  EXPECT_EQ(shows.find("got a CUDA error: gpu_lost"), std::string::npos) << shows;
}

std::string Watchdog(int rank, const std::string& seq) {
  const std::string who = std::to_string(rank);
  const std::string head =
      "[rank" + who + "]:[E615 17:43:40.6 ProcessGroupNCCL.cpp:616] [Rank " + who;
  return head + "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + seq +
         ", OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 6000" + who +
         "5 milliseconds before timing out.\n" + head +
         "] Some NCCL operations have failed or timed out.\n";
}

std::string DoNow(const proto::Verdict& verdict) {
  std::string text;
  for (const auto& sentence : verdict.resolution().immediate()) text += sentence + "\n";
  return text;
}

std::string Implied(const proto::Verdict& verdict) {
  return verdict.implies_size() == 0 ? std::string() : verdict.implies(0).text();
}

// One sentence names all ranks that gave up, and one the rank that did not come.
TEST(PastedWatchdogs, AreOneThing) {
  std::string text;
  for (int rank = 0; rank < 16; ++rank)
    if (rank != 5) text += Watchdog(rank, "80412");
  text +=
      "[rank5]:[E615 17:43:40.1 ProcessGroupNCCL.cpp:1306] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
      "Received a dump signal due to a collective timeout from  rank 0 and we will try our best to "
      "dump the debug info.\n";
  const proto::Verdict verdict = Judge(text);
  EXPECT_EQ(verdict.code(), "C2");
  EXPECT_EQ(Ranks(verdict), "5 ");
  ASSERT_GE(verdict.shows_size(), 1);
  EXPECT_EQ(verdict.shows(0).text().substr(0, 29), "ranks 0-4, 6-15 timed out in ");
  EXPECT_NE(Implied(verdict).find("rank 5 did not enter"), std::string::npos) << Implied(verdict);
  EXPECT_EQ(Shows(verdict).find("rank 5 timed out"), std::string::npos) << Shows(verdict);
  // Near: another place of the sequence is another collective.
  const proto::Verdict apart = Judge(Watchdog(0, "80412") + Watchdog(1, "80411"));
  ASSERT_GE(apart.shows_size(), 2);
  EXPECT_EQ(apart.shows(0).text().substr(0, 14), "rank 0 timed o");
  EXPECT_EQ(apart.shows(1).text().substr(0, 14), "rank 1 timed o");
  EXPECT_EQ(Implied(apart).find("did not enter a"), std::string::npos) << Implied(apart);
}

TEST(PastedPort, IsNamed) {
  const std::string error =
      "worker-3:41203:41888 [3] transport/net_ib.cc:98 NCCL WARN NET/IB : mlx5_3:1 Got async "
      "event : port error\n";
  const proto::Verdict verdict =
      Judge("step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\n" + error);
  EXPECT_EQ(verdict.code(), "X5");
  ASSERT_EQ(verdict.nodes_size(), 1);
  EXPECT_EQ(verdict.nodes(0), "worker-3");
  EXPECT_NE(DoNow(verdict).find("first that of mlx5_3:1 on worker-3: ibstat"), std::string::npos)
      << DoNow(verdict);
  // Near: a line that names no node.
  const proto::Verdict other = Judge("step 1 loss 2.5\nstep 2 loss 2.4\nstep 3 loss 2.3\n" +
                                     error.substr(error.find("NET/IB")));
  EXPECT_EQ(other.nodes_size(), 0);
  EXPECT_EQ(DoNow(other).find("first that"), std::string::npos) << DoNow(other);
}

TEST(PastedEnd, IsWhatTheOutputTells) {
  std::string steps;
  for (int i = 1; i <= 40; ++i)
    steps += "{'loss': " + std::to_string(3.0 - i * 0.05) +
             ", 'grad_norm': 1.0, 'learning_rate': 1e-05, 'epoch': " + std::to_string(i * 0.025) +
             "}\n";
  const std::string end =
      "{'train_runtime': 812.5, 'train_samples_per_second': 4.9, 'train_steps_per_second': 0.05, "
      "'train_loss': 1.9, 'epoch': 1.0}\n";
  const std::string text = VerdictToText(Judge(steps + end), Detail::kShort);
  EXPECT_NE(text.find("finished its training"), std::string::npos) << text;
  EXPECT_EQ(text.find("not supported on this node"), std::string::npos) << text;
  // Near: its end is not there.
  EXPECT_NE(VerdictToText(Judge(steps), Detail::kShort).find("how is not known"),
            std::string::npos);
}

// A sentence quotes the program and not who shipped its line.
TEST(PastedText, IsQuotedWithoutPrefixes) {
  const std::string stamp = "2026-03-02T10:00:31.428797999Z [rank4]: ";
  const std::string shows = Shows(Judge(stamp + "Traceback (most recent call last):\n" + stamp +
                                        "  File \"fit.py\", line 90, in <module>\n" + stamp +
                                        "    y = table[key]\n" + stamp + "KeyError: 'mask'\n"));
  EXPECT_NE(shows.find("was raised at: y = table[key]"), std::string::npos) << shows;
}

TEST(PastedError, AStateThatDoesNotFitNeedsNoTraceback) {
  const std::string error =
      "RuntimeError: Error(s) in loading state_dict for Net:\n"
      "\tsize mismatch for head.weight: copying a param with shape torch.Size([21, 256]) from "
      "checkpoint, the shape in current model is torch.Size([19, 256]).\n";
  const std::string traceback =
      "Traceback (most recent call last):\n  File \"fit.py\", line 9, in <module>\n"
      "    net.load_state_dict(state)\n"
      "  File \"/opt/lib/python3.10/site-packages/torch/nn/modules/module.py\", line 2189, in "
      "load_state_dict\n    raise RuntimeError(\n";
  EXPECT_EQ(Judge(error).code(), "E2");
  EXPECT_EQ(Judge(traceback + error).code(), "E2");
  // What a loader leaves out, and says: no error.
  EXPECT_EQ(Judge("size mismatch for head.weight: copying a param with shape torch.Size([21, 256]) "
                  "from checkpoint, the shape in current model is torch.Size([19, 256]).\n")
                .code(),
            "U0");
  EXPECT_EQ(
      Judge("RuntimeError: The size of tensor a (21) must match the size of tensor b\n").code(),
      "A1");
}

std::string InForward(const std::string& error) {
  return "Traceback (most recent call last):\n  File \"fit.py\", line 51, in <module>\n"
         "    out = model(x)\n"
         "  File \"/opt/lib/python3.11/site-packages/torch/nn/modules/conv.py\", line 549, in "
         "_conv_forward\n    return F.conv2d(\nRuntimeError: CUDA error: " +
         error + "\n";
}

TEST(PastedError, AGpuThatTheBuildDoesNotServeFailsAtTheStart) {
  std::string records;
  for (int i = 0; i < 40; ++i)
    records += "step " + std::to_string(i) + " loss " + std::to_string(4.0 - i * 0.09) + "\n";
  for (const char* error : {"no kernel image is available for execution on the device",
                            "CUDA driver version is insufficient for CUDA runtime version"}) {
    EXPECT_EQ(Judge("Loading dataset\n" + InForward(error)).code(), "A1") << error;
    EXPECT_NE(Judge(records + InForward(error)).code(), "A1") << error;
  }
  EXPECT_EQ(Judge(InForward("an illegal memory access was encountered")).code(), "X3");
}

}  // namespace
}  // namespace rankscope::replay
