// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/told_text.h"

#include <gtest/gtest.h>

#include <string>

#include "exporter/replay/log_file.h"
#include "exporter/replay/written_text.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;

constexpr char kAccess[] = "RuntimeError: CUDA error: an illegal memory access was encountered";
constexpr char kOom[] =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.65 GiB of which 63.06 MiB is free.";
constexpr char kNodeFailure[] =
    "slurmstepd: error: *** JOB 4812 ON n3 CANCELLED AT 2026-03-02T22:10:01 DUE TO NODE FAILURE, "
    "SEE SLURMCTLD LOG FOR DETAILS ***";

std::string Line(const std::string& text) {
  return text + "\n";
}

TEST(ToldText, TellsOfErrors) {
  const std::string texts[] = {
      "v0.4.1\n- fix: " + Line(kAccess) + "- resume no longer raises KeyError: 'optimizer'\n",
      "0.4.1 (2026-03-01)\n------------------\n"
      "* Fixed `OSError: [Errno 28] No space left on device` when saving to tmpfs\n"
      "* Fixed DataLoader worker (pid 123) is killed by signal: Killed. with many workers\n",
      "Runbook\n\n1. Xid 79: drain the node.\n2. 'slurmstepd: error: *** JOB <id> ON <node> "
      "CANCELLED AT <time> DUE TO NODE FAILURE' : open a ticket.\n",
      "Known messages:\nslurmstepd: error: *** JOB <id> ON <node> CANCELLED AT <time> DUE TO NODE "
      "FAILURE ***\n",
      std::string("Out of memory\n=============\n\nIt looks like this::\n\n    ") + Line(kOom) +
          "\nLower the batch size.\n",
      std::string(
          "class Retry:\n    def run(self, fn):\n        return fn()\n\nERRORS = {\n    '") +
          kAccess + "': 'X3',\n    'No space left on device': 'X21',\n}\n",
      std::string("#!/bin/bash\nif grep -q '") + kAccess + "' out.log; then\n  exit 3\nfi\n"};
  TempDir dir;
  for (const std::string& text : texts) {
    EXPECT_TRUE(TellsOfErrorsOnly(text)) << text;
    dir.Write("a.log", text);
    const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->code(), "U0") << text;
    ASSERT_EQ(verdict->data_quality().notes_size(), 1);
    EXPECT_NE(verdict->data_quality().notes(0).find("tells of errors"), std::string::npos);
  }
}

TEST(ToldText, WhatAProgramPrintedIsJudged) {
  const std::string raised =
      "Traceback (most recent call last):\n  File \"fit.py\", line 90, in <module>\n    main()\n" +
      Line(kAccess);
  const std::string texts[] = {
      // A mail with the scheduler's own line
      std::string("Hi,\n\nour job stopped. The log says\n\n") + Line(kNodeFailure) +
          "\nCan you look?\n",
      std::string("- n3 is bad\n- ") + Line(kNodeFailure) + "- please drain it\n",
      // A program that lists its options by bullets
      "- lr: 0.1\n- batch: 8\n- workers: 4\n" + Line(kAccess), "* loading\n* training\n" + raised,
      // Output behind the program's text
      "import torch\nfrom fit import main\nmain()\n" + Line(kAccess),
      "import torch\nfrom fit import main\nmain()\nKeyError: 'a long name of a column'\n",
      // One mark alone
      std::string("- ") + Line(kAccess),
      // A logger's record
      std::string("level=error msg=\"") + kAccess + "\" rank=3\n", Line(kOom), raised};
  for (const std::string& text : texts) EXPECT_FALSE(TellsOfErrorsOnly(text)) << text;
  EXPECT_FALSE(TellsOfErrorsOnly("- one\n- two\n"));  // of no error
  EXPECT_FALSE(TellsOfErrorsOnly(""));
}

TEST(ToldText, APageBeginsWithASentence) {
  const auto fenced = [](const std::string& text) { return "```\n" + text + "```\n"; };
  const std::string page = "This page lists common errors.\n\n## Out of memory\n\n" +
                           fenced(Line(kOom)) + "\nLower the batch.\n\n## Access\n\n" +
                           fenced(Line(kAccess)) + "\nUpdate the driver.\n";
  EXPECT_EQ(WrittenByHand(page), "a document");
  // A report may begin with one, too.
  const std::string report = "My training stops at once.\n\n## Logs\n\n" + fenced(Line(kAccess)) +
                             "\n## Environment\n\n" + fenced("torch 2.3\n");
  EXPECT_EQ(WrittenByHand(report), "");
  EXPECT_NE(QuotedOutput(report), "");
  EXPECT_EQ(WrittenByHand("It stops with\n\n" + fenced(Line(kAccess))), "");
}

}  // namespace
}  // namespace rankscope::replay
