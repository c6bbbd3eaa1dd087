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

std::string Traceback() {
  return "Traceback (most recent call last):\n  File \"fit.py\", line 90, in <module>\n"
         "    main()\n  File \"fit.py\", line 71, in main\n    y = table[key]\nKeyError: 'mask'\n";
}

std::string Fenced(const std::string& text) {
  return "```shell\n" + text + "```\n";
}

TEST(WrittenText, AReportIsJudgedByItsFences) {
  const std::string forms[] = {
      "### Describe the bug\n\nIt stops.\n\n" + Fenced(Records("") + Traceback()) +
          "\n### Environment\n\n- Ubuntu 22.04\n",
      "### System Info\n\n" + Fenced("torch 2.3\n") + "\n### Reproduction\n\n" +
          Fenced("import torch\nfrom fit import main\n@main\n") + Fenced(Traceback()),
      "## Environment\n4 GPUs\n## Traceback\n" + Fenced(Traceback()),
      "# Training stops with a KeyError\n" + Fenced(Traceback())};
  for (const std::string& form : forms) {
    EXPECT_EQ(WrittenByHand(form), "") << form;
    const std::string quoted = QuotedOutput(form);
    EXPECT_EQ(quoted.size(), form.size()) << form;
    EXPECT_EQ(quoted.find("KeyError: 'mask'"), form.find("KeyError: 'mask'")) << form;
    EXPECT_EQ(quoted.find('#'), std::string::npos) << form;
    EXPECT_EQ(quoted.find("import torch"), std::string::npos) << form;
    TempDir dir;
    dir.Write("a.log", form);
    const auto verdict = JudgeLog(dir / "a.log", std::nullopt);
    ASSERT_TRUE(verdict);
    EXPECT_NE(verdict->code(), "U0") << form;
    ASSERT_GE(verdict->data_quality().notes_size(), 1);
    EXPECT_NE(verdict->data_quality().notes(0).find("this is a report"), std::string::npos);
  }
}

TEST(WrittenText, AManualWithErrorsIsADocument) {
  const std::string manuals[] = {
      "# Fit\n## Installation\nRun it:\n" + Fenced("pip install fit\n") +
          "## Troubleshooting\nIf you see\n" + Fenced("RuntimeError: CUDA out of memory.\n") +
          "lower the batch.\n",
      // It tells how to report a bug.
      "# Fit\n## Installation\n" + Fenced("pip install fit\n") + "## Usage\n" +
          Fenced(Records("")) + "## Error messages\n" + Fenced(Traceback()),
      "# Common errors\n## Out of memory\n" + Fenced("RuntimeError: CUDA out of memory.\n") +
          "Lower the batch.\n## Error\n" + Fenced("KeyError: 'mask'\n"),
      "# GPT-2 from scratch\nThe loss falls.\n" + Fenced(Records("")),
      "# Notes\nOne\nTwo\nThree\nFour\nFive\nSix\nSeven\nEight\n" + Fenced(Traceback())};
  for (const std::string& manual : manuals) {
    EXPECT_EQ(WrittenByHand(manual), "a document") << manual;
    EXPECT_EQ(QuotedOutput(manual), "") << manual;
  }
}

TEST(WrittenText, AJobMayPrintFences) {
  const std::string sample = Fenced("def add(a, b):\n    return a + b\n");
  const std::string logs[] = {"# conda environments:\n" + Records("") + sample + Records(""),
                              "## Trainer v2 ##\nloading\n" + sample + Traceback(),
                              "# python fit.py --lr 1e-3\n" + sample +
                                  "srun: error: n1: task 0: Exited with exit code 1\n"};
  for (const std::string& log : logs) {
    EXPECT_EQ(WrittenByHand(log), "") << log;
    EXPECT_EQ(QuotedOutput(log), "") << log;
  }
  // A table and a list have alike lines, too.
  std::string table = "# Models\n";
  for (int i = 0; i < 9; ++i)
    table += "| " + std::to_string(i) + " | 7" + std::to_string(i) + ".5 |\n";
  for (int i = 0; i < 9; ++i) table += "- 10" + std::to_string(i) + " of 200\n";
  EXPECT_EQ(WrittenByHand(table + Fenced("python fit.py\n")), "a document");
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
