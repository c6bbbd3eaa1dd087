// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The whole scrape of one fixed state, byte for byte, and every row of the catalogue in it. To
// accept a change: RANKSCOPE_ACCEPT=1 metrics_test --gtest_filter='Golden.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "exporter/metrics/encoder.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

const std::filesystem::path kGolden =
    std::filesystem::path(RANKSCOPE_SOURCE_DIR) / "tests/fixtures/metrics/scrape.txt";

Published Everything() {
  JobStatus gpu = test::HangingJob("8842");
  for (RankStatus& rank : gpu.ranks) {
    rank.engine_activity = 1;
    rank.sm_activity = 0.9375;
  }
  return test::OnNode({test::HealthyJob(), std::move(gpu)});
}

// Without what the machine and the compiler decide.
std::string Stable(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at) + 1;
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end;
    if (line.starts_with("process_")) {
      out.append(line.substr(0, line.rfind(' '))).append(" 1\n");
    } else if (line.starts_with("rankscope_build_info")) {
      out.append("rankscope_build_info{version=\"0.1.0\",compiler=\"12.2.0\"} 1\n");
    } else {
      out.append(line);
    }
  }
  return out;
}

std::string ReadGolden() {
  std::ifstream in(kGolden);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Golden, ScrapeIsAsAccepted) {
  SnapshotBuilder builder;
  std::string text;
  AppendText(*builder.Build(Everything()), text);
  text = Stable(text);
  if (std::getenv("RANKSCOPE_ACCEPT") != nullptr) std::ofstream(kGolden) << text;
  EXPECT_EQ(text, ReadGolden()) << "accept with RANKSCOPE_ACCEPT=1";
}

TEST(Golden, HasEveryRowOfTheCatalogue) {
  const std::string golden = ReadGolden();
  for (const MetricRow& row : Catalog()) {
    EXPECT_NE(golden.find("# TYPE " + std::string(row.name) + " "), std::string::npos) << row.name;
  }
}

TEST(Golden, PromtoolFindsNothing) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed (package prometheus)";
  }
  EXPECT_EQ(std::system(("promtool check metrics < " + kGolden.string()).c_str()), 0);
}

}  // namespace
}  // namespace rankscope::metrics
