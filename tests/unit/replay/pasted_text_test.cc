// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What people paste: the end of a log, or the lines of an error without what stood around them.
#include <gtest/gtest.h>

#include <string>

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
