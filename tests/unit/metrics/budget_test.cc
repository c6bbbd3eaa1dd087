// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What fits on the page of a whole node: which series are there in any case, that metrics are whole
// or absent, that what is missing is said by name and number, and the arithmetic of
// exporter/README.md, which is written from here: RANKSCOPE_ACCEPT=1 metrics_test
// --gtest_filter='*Golden*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "exporter/metrics/snapshot.h"
#include "tests/unit/metrics/node_loads.h"

namespace rankscope::metrics {
namespace {

using test::kNodeLoads;
using test::NodeAt;
using test::NodeLoad;

constexpr int kAllFailed =
    test::kFirstFailure + test::kFailures + 10;  // minute, none older than 1 h
constexpr int32_t kNoCap = 1'000'000;

std::shared_ptr<const Snapshot> Page(const Published& published, int32_t max_series = 0) {
  return SnapshotBuilder({.dcgm_names = true, .max_series = max_series}).Build(published);
}

size_t CountOf(const Snapshot& page, std::string_view name) {
  for (const Family& family : page.families) {
    if (family.row->name == name) return family.SeriesCount();
  }
  return 0;
}

// By metric; all but the rows that say so.
std::map<std::string_view, size_t> Counts(const Snapshot& page) {
  std::map<std::string_view, size_t> counts;
  for (const Family& family : page.families) {
    if (family.row->name != "rankscope_series_missing")
      counts[family.row->name] = family.SeriesCount();
  }
  return counts;
}

// By metric, as the page says.
std::map<std::string, size_t> MissingOf(const Snapshot& page) {
  std::map<std::string, size_t> missing;
  for (const Family& family : page.families) {
    if (family.row->name != "rankscope_series_missing") continue;
    for (const Series& one : family.series)
      missing[one.labels->values.front()] = static_cast<size_t>(one.value);
  }
  return missing;
}

std::set<std::string> JobsOf(const Snapshot& page, std::string_view metric) {
  std::set<std::string> ids;
  for (const Family& family : page.families) {
    if (family.row->name != metric) continue;
    for (const Series& one : family.series) ids.insert(one.labels->values.front());
  }
  return ids;
}

// Series of the live jobs by metric.
std::map<std::string_view, size_t> WithoutEnded(const NodeLoad& load) {
  Published published = NodeAt(load, kAllFailed);
  std::erase_if(published.jobs, [](const auto& job) { return !job->running; });
  return Counts(*Page(published, kNoCap));
}

class Budget : public testing::TestWithParam<NodeLoad> {};

TEST_P(Budget, GpusVerdictsAndWhatTheDashboardShowsOfRanksAreThere) {
  const NodeLoad& load = GetParam();
  const auto page = Page(NodeAt(load, kAllFailed));
  EXPECT_LE(page->SeriesCount(), static_cast<size_t>(MaxSeriesOf(Profile::kDefault)));
  const auto all = Counts(*Page(NodeAt(load, kAllFailed), kNoCap));
  const auto live = WithoutEnded(load);
  for (const MetricRow& row : Catalog()) {
    if (row.keep >= Keep::kRankDetail) continue;
    const auto wanted = all.find(row.name);
    if (wanted == all.end()) continue;
    const bool has_ended = row.keep > Keep::kVerdictInfo && row.labels.starts_with("job_id");
    if (has_ended) {
      EXPECT_GE(CountOf(*page, row.name), live.contains(row.name) ? live.at(row.name) : 0)
          << row.name;
    } else {
      EXPECT_EQ(CountOf(*page, row.name), wanted->second) << row.name;
    }
  }
  EXPECT_EQ(CountOf(*page, "rankscope_gpu_power_watts"), static_cast<size_t>(load.gpus));
  EXPECT_EQ(CountOf(*page, "DCGM_FI_DEV_POWER_USAGE"), static_cast<size_t>(load.gpus));
  EXPECT_GE(CountOf(*page, "rankscope_rank_sm_active_median_ratio"),
            static_cast<size_t>(load.jobs * load.ranks));
  const auto told = JobsOf(*page, "rankscope_verdict_info");
  for (int number = 0; number < test::kFailures; ++number)
    EXPECT_TRUE(told.contains(test::FailingJob(number))) << number;
}

TEST_P(Budget, WhatIsMissingIsSaidByNameAndNumber) {
  const Published published = NodeAt(GetParam(), kAllFailed);
  const auto all = Counts(*Page(published, kNoCap));
  for (const int32_t cap : {0, 300, 500, 1000, 1500, 2000, 3000}) {
    SCOPED_TRACE(cap);
    const auto page = Page(published, cap);
    if (cap >= 500) {
      EXPECT_LE(page->SeriesCount(), static_cast<size_t>(cap));
    }
    const auto shown = Counts(*page);
    auto missing = MissingOf(*page);
    size_t unnamed = 0;
    for (const auto& [name, wanted] : all) {
      const auto found = shown.find(name);
      const size_t left_out = wanted - (found == shown.end() ? 0 : found->second);
      const auto said = missing.find(std::string(name));
      if (said == missing.end()) {
        unnamed += left_out;
      } else {
        EXPECT_EQ(said->second, left_out) << name;
        missing.erase(said);
      }
    }
    EXPECT_EQ(unnamed, missing.contains("other") ? missing["other"] : 0);
    missing.erase("other");
    EXPECT_TRUE(missing.empty());
  }
}

TEST_P(Budget, FromTheSecondTickOnEveryMetricIsNamed) {
  SnapshotBuilder builder({.dcgm_names = true});
  const Published published = NodeAt(GetParam(), kAllFailed);
  builder.Build(published);
  const auto page = builder.Build(published);
  EXPECT_LE(page->SeriesCount(), static_cast<size_t>(MaxSeriesOf(Profile::kDefault)));
  EXPECT_FALSE(MissingOf(*page).contains("other"));
}

// Of some GPUs or ranks a sum would be wrong, and nothing would show it.
TEST_P(Budget, MetricsOfGpusAndRanksAreWholeOrAbsent) {
  Published published = NodeAt(GetParam(), kAllFailed);
  std::erase_if(published.jobs, [](const auto& job) { return !job->running; });
  const auto all = WithoutEnded(GetParam());
  for (int32_t cap = 300; cap <= 5000; cap += 370) {
    const auto page = Page(published, cap);
    for (const Family& family : page->families) {
      const Keep keep = family.row->keep;
      if (keep != Keep::kGpu && keep != Keep::kDcgm && keep != Keep::kGpuDetail &&
          keep < Keep::kRank) {
        continue;
      }
      if (family.row->name.starts_with("rankscope_nvml_")) continue;
      EXPECT_EQ(family.SeriesCount(), all.at(family.row->name)) << family.row->name << " " << cap;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Loads, Budget, testing::ValuesIn(kNodeLoads),
                         [](const auto& load) { return std::string(load.param.name); });

TEST(BudgetOfANode, AThousandFailedJobsLeaveRoomForGpus) {
  Published published = NodeAt({"", "", 16, 256, 1}, 0);
  for (int number = 0; number < 1024; ++number) {
    JobStatus job = test::FailedJob(number, test::kWallSeconds - 120);
    job.job_id = "gone-" + std::to_string(number);
    published.jobs.push_back(std::make_shared<const JobStatus>(std::move(job)));
  }
  const auto page = Page(published);
  EXPECT_LE(page->SeriesCount(), static_cast<size_t>(MaxSeriesOf(Profile::kDefault)));
  EXPECT_EQ(CountOf(*page, "rankscope_verdict_info"), 1280u);
  EXPECT_EQ(CountOf(*page, "rankscope_verdict"), 256u);
  const auto all = Counts(*Page(published, kNoCap));
  for (const MetricRow& row : Catalog()) {
    if (row.keep == Keep::kGpu && all.contains(row.name)) {
      EXPECT_EQ(CountOf(*page, row.name), all.at(row.name)) << row.name;
    }
  }
}

TEST(BudgetOfANode, ThereIsRoomForJobsThatEndAndForRanksBeforeOthersAreCut) {
  const Published published = NodeAt(kNodeLoads[0], kAllFailed);
  const auto all = Page(published, kNoCap)->SeriesCount();
  const auto page = Page(published, static_cast<int32_t>(all) - 40);
  for (const Family& family : page->families) {
    if (family.row->name != "rankscope_series_dropped_total") continue;
    for (const Series& one : family.series)
      EXPECT_EQ(one.value > 0, one.labels->values.front() == "cap_ended")
          << one.labels->values.front();
  }
}

// Columns of the documentation.
constexpr std::string_view kColumns[] = {
    "exporter, Slurm", "GPUs", "DCGM names", "live jobs", "ranks", "their details", "ended jobs"};

size_t ColumnOf(const MetricRow& row, const Series& series) {
  const bool of_job = row.labels.starts_with("job_id");
  if (of_job && series.labels->values.front().starts_with("failing")) return 6;
  switch (row.keep) {
    case Keep::kAlways:
    case Keep::kSlurm:
      return 0;
    case Keep::kGpu:
    case Keep::kGpuDetail:
      return 1;
    case Keep::kDcgm:
      return 2;
    case Keep::kRank:
      return 4;
    case Keep::kRankDetail:
      return 5;
    default:
      return 3;
  }
}

std::string TableRow(const NodeLoad& load) {
  const Published published = NodeAt(load, kAllFailed);
  std::array<size_t, std::size(kColumns)> sums{};
  size_t zeros = 0, all = 0;
  const auto whole = Page(published, kNoCap);
  for (const Family& family : whole->families) {
    for (const Series& one : family.series) {
      ++sums[ColumnOf(*family.row, one)];
      ++all;
      zeros += family.row->type == MetricType::kStateSet && one.value == 0 ? 1 : 0;
    }
  }
  std::string row = "| " + std::string(load.words) + " |";
  for (const size_t sum : sums) row += " " + std::to_string(sum) + " |";
  const auto page = Page(published);
  size_t missing = 0;
  for (const auto& [name, count] : MissingOf(*page)) missing += count;
  return row + " " + std::to_string(all) + " | " + std::to_string(page->SeriesCount()) + " | " +
         std::to_string(missing) + " | " + std::to_string(100 * zeros / all) + " % |\n";
}

std::string Table() {
  std::string table = "| node |", line = "| --- |";
  for (const std::string_view column : kColumns) {
    table += " " + std::string(column) + " |";
    line += " ---: |";
  }
  table +=
      " all | shown | missing | zeros of state sets |\n" + line + " ---: | ---: | ---: | ---: |\n";
  for (const NodeLoad& load : kNodeLoads) table += TableRow(load);
  return table;
}

TEST(BudgetGolden, ReadmeHasTheArithmetic) {
  const std::string path = std::string(RANKSCOPE_SOURCE_DIR) + "/exporter/README.md";
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::string_view kBegin = "<!-- begin: budget -->\n", kEnd = "<!-- end: budget -->";
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << path;
  const size_t from = begin + kBegin.size();
  const std::string table = Table();
  if (std::getenv("RANKSCOPE_ACCEPT") != nullptr) {
    std::ofstream(path) << std::string(text).replace(from, end - from, table);
    return;
  }
  EXPECT_EQ(text.substr(from, end - from), table) << "accept with RANKSCOPE_ACCEPT=1";
}

}  // namespace
}  // namespace rankscope::metrics
