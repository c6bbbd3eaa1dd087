// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/written_text.h"

#include <gtest/gtest.h>

#include <string>

#include "exporter/replay/log_file.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;

std::string Records(const std::string& before) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text +=
        before + "epoch " + std::to_string(i) + " loss " + std::to_string(4.0 - i * 0.09) + "\n";
  return text;
}

TEST(WrittenText, IsNoOutput) {
  EXPECT_EQ(
      WrittenByHand("import torch\n\ndef fit(model):\n" + Records("    # ") + "    return model\n"),
      "a program's source");
  EXPECT_EQ(WrittenByHand("# How to train\nRun it:\n```\n" + Records("") + "```\n"), "a document");
}

TEST(WrittenText, OutputMayHoldIt) {
  EXPECT_EQ(WrittenByHand(Records("")), "");
  EXPECT_EQ(WrittenByHand(Records("# ")), "");  // a table that gnuplot reads
  EXPECT_EQ(WrittenByHand("import torch\n\ndef fit(model):\n    return model\n" + Records("")), "");
  EXPECT_EQ(WrittenByHand("import torch\ndef fit(model):\n    fit_all(model)\n"
                          "ModuleNotFoundError: No module named 'apex'\n"),
            "");
  EXPECT_EQ(WrittenByHand(Records("  ")), "");
  EXPECT_EQ(WrittenByHand("# 4 GPUs\n" + Records("")), "");
  EXPECT_EQ(WrittenByHand(""), "");
}

TEST(WrittenText, IsNotJudged) {
  TempDir dir;
  dir.Write("a.log", "# How to train\nRun it:\n```\n" + Records("") + "```\n");
  const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->code(), "U0");
  ASSERT_EQ(verdict->data_quality().notes_size(), 1);
  EXPECT_NE(verdict->data_quality().notes(0).find("this is a document"), std::string::npos);
}

TEST(Endings, WhatAScriptSaysHealsNothing) {
  const std::string uncaught =
      "Traceback (most recent call last):\n  File \"fit.py\", line 90, in <module>\n    main()\n"
      "  File \"fit.py\", line 71, in main\n    y = table[key]\nKeyError: 'mask'\n";
  const std::string caught =
      "Traceback (most recent call last):\n  File \"fit.py\", line 71, in upload\n"
      "    y = table[key]\nKeyError: 'mask'\n";
  const std::string done = "Training complete.\n";
  TempDir dir;
  const auto code_of = [&dir](const std::string& end) {
    dir.Write("a.log", Records("") + end);
    const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
    return verdict ? verdict->code() : std::string();
  };
  EXPECT_EQ(code_of(uncaught + done), "X1");
  EXPECT_EQ(code_of(caught + done), "G1");
  EXPECT_EQ(code_of(done), "G1");
  EXPECT_EQ(code_of("fit.sh: Zeile 3: 4077 Abgebrochen             python fit.py\n"), "U0");
  EXPECT_EQ(code_of("User defined signal 1\n"), "U0");
  EXPECT_EQ(code_of("fit-1 exited with code 3\n"), "U0");
  EXPECT_EQ(code_of("fit-1 exited with code 0\n"), "G1");
}

}  // namespace
}  // namespace rankscope::replay
