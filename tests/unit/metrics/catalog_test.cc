// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace rankscope::metrics {
namespace {

TEST(Catalog, NamesFollowTheirTypeAndUnit) {
  for (const MetricRow& row : Catalog()) {
    SCOPED_TRACE(row.name);
    if (row.name.starts_with("DCGM_FI_")) {  // another's names: only when they are asked for
      EXPECT_TRUE(IsDcgmName(row.profile));
      EXPECT_EQ(row.labels, row.name == "DCGM_FI_DEV_XID_ERRORS" ? kDcgmXidLabels : kDcgmLabels);
      continue;
    }
    EXPECT_FALSE(IsDcgmName(row.profile));
    EXPECT_TRUE(row.name.starts_with("rankscope_") || row.name.starts_with("process_"));
    EXPECT_EQ(row.name.ends_with("_total"), row.type == MetricType::kCounter);
    EXPECT_EQ(row.name.ends_with("_info"), row.type == MetricType::kInfo);
    std::string_view stem = row.name;
    if (row.type == MetricType::kCounter) stem.remove_suffix(6);
    if (!row.unit.empty()) {
      EXPECT_TRUE(stem.ends_with("_" + std::string(row.unit)) ||
                  row.name.starts_with("rankscope_training_step_seconds"));
    }
  }
}

TEST(Catalog, LabelsAreTheHousesOwn) {
  // What scrapers attach themselves, what would be unbounded, and what has a meaning elsewhere.
  const std::set<std::string_view> forbidden = {"job",       "instance", "pod", "namespace",
                                                "container", "cluster",  "pid", "le",
                                                "quantile",  "type"};
  // Names and places: to be joined, not to be counted by.
  const std::set<std::string_view> of_info = {"user",    "command",   "node",         "step_id",
                                              "account", "job_name",  "container_id", "k8s_pod_uid",
                                              "qos",     "partition", "master_addr",  "dependency"};
  for (const MetricRow& row : Catalog()) {
    for (std::string_view rest = row.labels; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
      EXPECT_FALSE(forbidden.contains(name)) << row.name << " " << name;
      // Of the one instance beside the controller, which speaks for all nodes and users.
      const bool of_all = row.name.starts_with("rankscope_slurm_") &&
                          row.labels.find("job_id") == std::string_view::npos;
      if (of_info.contains(name) && !of_all) {
        EXPECT_EQ(row.type, MetricType::kInfo) << row.name << " " << name;
      }
    }
  }
}

TEST(Catalog, HistogramsHaveBoundsAndAreNotOfTheDefaultProfile) {
  for (const MetricRow& row : Catalog()) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(!row.bounds.empty(), row.type == MetricType::kHistogram);
    EXPECT_EQ(SeriesOf(row), row.bounds.empty() ? 1 : row.bounds.size() + 3);
    for (size_t i = 1; i < row.bounds.size(); ++i) EXPECT_LT(row.bounds[i - 1], row.bounds[i]);
    if (row.type == MetricType::kHistogram) {
      EXPECT_EQ(row.profile, Profile::kFull);
    }
    // What text formats append to a histogram's name.
    for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
      EXPECT_FALSE(row.name.ends_with(suffix));
    }
  }
}

TEST(Catalog, FindsRowsByName) {
  for (const MetricRow& row : Catalog()) EXPECT_EQ(FindMetric(row.name), &row);
  EXPECT_EQ(FindMetric("rankscope_verdic"), nullptr);
  EXPECT_EQ(FindMetric("zzz"), nullptr);
  EXPECT_EQ(FindMetric(""), nullptr);
}

}  // namespace
}  // namespace rankscope::metrics
