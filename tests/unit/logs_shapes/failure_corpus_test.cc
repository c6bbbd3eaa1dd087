// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Real logs with labels, where a checkout of the development corpus stands beside the sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "detectors/logs/failures/exception_table.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/reader.h"
#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

std::vector<std::string> Split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
  return parts;
}

std::vector<Incident> ReadLog(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const std::string text = bytes.str();
  Reader reader;
  std::vector<Incident> incidents;
  const auto keep = [&incidents](std::span<const Record> records) {
    for (const Record& record : records) {
      if (const auto* incident = std::get_if<Incident>(&record)) incidents.push_back(*incident);
    }
  };
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find_first_of("\r\n", at);
    if (end == std::string::npos) end = text.size();
    LogLine line;
    line.offset = static_cast<int64_t>(at);
    line.text = std::string_view(text).substr(at, end - at);
    line.end = end < text.size() && text[end] == '\r' ? LineEnd::kCr : LineEnd::kLf;
    keep(reader.Feed(line, Timestamp{}));
    at = end + 1;
  }
  keep(reader.Flush());
  return incidents;
}

TEST(FailureCorpus, NamesTheExceptionAndItsFaultClass) {
  const std::filesystem::path corpus =
      std::filesystem::path(RANKSCOPE_SOURCE_DIR) / ".." / "shared" / "corpus" / "failures";
  if (!std::filesystem::exists(corpus / "labels.tsv")) GTEST_SKIP() << "no corpus at " << corpus;
  std::ifstream labels(corpus / "labels.tsv");
  std::string row;
  std::getline(labels, row);
  int named = 0, exceptions = 0, right_class = 0, classes = 0;
  while (std::getline(labels, row)) {
    const std::vector<std::string> column = Split(row, '\t');
    if (column.size() < 9 || column[3] == "-") continue;
    ++exceptions;
    const Incident* last = nullptr;
    const std::vector<Incident> incidents = ReadLog(corpus / "logs" / column[0]);
    for (const Incident& incident : incidents) {
      const bool same = LastComponent(incident.exception_type) == LastComponent(column[3]);
      if (same && incident.role == Role::kInitiating) last = &incident;
    }
    if (last != nullptr) ++named;
    if (last == nullptr) std::printf("not named: %s %s\n", column[0].c_str(), column[3].c_str());
    if (column[1] != "A1") continue;
    ++classes;
    const std::vector<std::string> right = Split(column[8] + "," + column[2], ',');
    if (last != nullptr && std::count(right.begin(), right.end(), FaultClass(*last)) > 0)
      ++right_class;
  }
  std::printf("exception named in %d of %d, fault class right in %d of %d\n", named, exceptions,
              right_class, classes);
  EXPECT_GE(named * 10, exceptions * 9);
  EXPECT_GE(right_class * 20, classes * 17);
}

}  // namespace
}  // namespace rankscope::logs
