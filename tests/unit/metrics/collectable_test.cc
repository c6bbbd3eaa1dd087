// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "exporter/metrics/process_metrics.h"
#include "exporter/metrics/self_metrics.h"

namespace rankscope::metrics {
namespace {

class Given final : public prometheus::Collectable {
 public:
  explicit Given(std::vector<prometheus::MetricFamily> families) : families_(std::move(families)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return families_; }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

prometheus::MetricFamily Family(std::string name, prometheus::MetricType type,
                                std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  return {std::move(name), "", type, {metric}};
}

TEST(Collectable, OnlyCataloguedFamiliesWithTheirLabelsPass) {
  using prometheus::MetricType;
  const Given given({
      Family("rankscope_tick_seconds", MetricType::Gauge, {}, 0.5),
      Family("rankscope_source_lost_total", MetricType::Counter, {{"source", "procfs"}}, 3),
      Family("somebody_elses", MetricType::Gauge, {}, 1),
      Family("rankscope_source_up", MetricType::Gauge, {{"pid", "7"}}, 1),
      Family("rankscope_source_up", MetricType::Gauge, {{"source", "a"}, {"pid", "7"}}, 1),
      Family("rankscope_tick_seconds", MetricType::Counter, {}, 1),
      Family("rankscope_tick_seconds", MetricType::Histogram, {}, 1),
  });
  std::map<std::string, double> taken;
  size_t dropped = 0;
  ForEachSeries(
      given,
      [&](MetricId id, const LabelPointer& labels, double value) {
        taken[std::string(kCatalog[id].name) + (labels ? labels->text : "")] = value;
      },
      [&](size_t series) { dropped += series; });
  EXPECT_EQ(taken,
            (std::map<std::string, double>{{"rankscope_tick_seconds", 0.5},
                                           {"rankscope_source_lost_total{source=\"procfs\"}", 3}}));
  EXPECT_EQ(dropped, 5u);
}

class ProcFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "proc.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::filesystem::create_directories(root_ / "fd");
    Write("fd/0", "");
    Write("fd/1", "");
    Write("stat",
          "77 (a ) b) S 1 77 77 0 -1 4194304 10 0 0 0 1234 66 0 0 20 0 9 0 5000 1000000 300 1");
    Write("limits",
          "Limit                     Soft Limit           Hard Limit           Units\n"
          "Max open files            1024                 4096                 files\n");
    Write("boot", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name) << text;
  }
  std::map<std::string, double> Collect() const {
    std::map<std::string, double> out;
    for (const auto& family : ProcessMetrics(root_, root_ / "boot").Collect()) {
      const auto& metric = family.metric.front();
      out[family.name] = family.type == prometheus::MetricType::Counter ? metric.counter.value
                                                                        : metric.gauge.value;
    }
    return out;
  }
  std::filesystem::path root_;
};

TEST_F(ProcFiles, GiveTheProcessMetrics) {
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(Collect(),
            (std::map<std::string, double>{
                {"process_cpu_seconds_total", 1300 / ticks},
                {"process_max_fds", 1024},
                {"process_open_fds", 2},
                {"process_resident_memory_bytes", 300 * static_cast<double>(sysconf(_SC_PAGESIZE))},
                {"process_start_time_seconds", 1700000000 + 5000 / ticks},
                {"process_threads", 9},
            }));
}

TEST_F(ProcFiles, WhatCannotBeReadIsLeftOut) {
  std::filesystem::remove_all(root_ / "fd");
  Write("stat", "77 (cut");
  Write("limits", "");
  EXPECT_TRUE(Collect().empty());
}

}  // namespace
}  // namespace rankscope::metrics
