// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Real logs, where they lie beside the sources: no record of a `custom` log is strong evidence, and
// records with a loss are found in every log whose framework this room reads.
// tests/support/score_progress.py counts exactly.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(ProgressCorpus, StepsAndLosses) {
  const std::filesystem::path corpus =
      std::filesystem::path(RANKSCOPE_SOURCE_DIR) / "../shared/corpus/progress";
  if (!std::filesystem::exists(corpus / "index.tsv")) GTEST_SKIP() << "no corpus at " << corpus;
  std::istringstream index(ReadFile(corpus / "index.tsv"));
  std::string entry;
  std::getline(index, entry);
  int files = 0;
  while (std::getline(index, entry)) {
    std::istringstream columns(entry);
    std::string file;
    std::string framework;
    std::string count;
    std::string has_loss;
    std::getline(columns, file, '\t');
    std::getline(columns, framework, '\t');
    std::getline(columns, count, '\t');
    std::getline(columns, has_loss, '\t');
    const Records records = ReadText(ReadFile(corpus / file));
    size_t strong = 0;
    size_t with_loss = 0;
    for (const Row& row : records.rows) {
      strong += !row.progress.generic;
      with_loss += !row.progress.generic && !row.loss.empty();
    }
    ++files;
    if (framework == "custom") {
      EXPECT_EQ(strong, 0u) << file;
    }
    if (framework == "other") continue;
    if (has_loss == "yes") {
      EXPECT_GT(with_loss, 0u) << file;
    }
    if (has_loss == "no") {
      EXPECT_EQ(with_loss, 0u) << file;
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace rankscope::logs
