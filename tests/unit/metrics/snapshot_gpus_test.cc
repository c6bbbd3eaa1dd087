// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// GPUs on /metrics: what is absent has no series, what is not up has no numbers, and the cap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/metrics/encoder.h"
#include "exporter/metrics/snapshot.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

using test::GpuSource;
using test::HealthyJob;
using test::LostGpu;
using test::OnNode;
using test::UpGpu;
using testing::HasSubstr;
using testing::Not;

Published OnGpuNode(std::vector<GpuStatus> gpus, std::vector<JobStatus> jobs = {}) {
  Published published = OnNode(std::move(jobs));
  published.agent.sources.push_back(GpuSource(std::move(gpus)));
  return published;
}

std::string Scrape(const Published& published, SnapshotOptions options = {}) {
  std::string text;
  AppendText(*SnapshotBuilder(std::move(options)).Build(published), text);
  return text;
}

size_t CountOf(const std::string& text, const std::string& start) {
  size_t count = 0;
  for (size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') ++count;
  }
  return count;
}

TEST(SnapshotGpus, AbsentIsNoSeries) {
  GpuStatus gpu;
  gpu.identity.uuid = "GPU-7";
  gpu.state = GpuState::kUp;
  gpu.reading.power_watts = 0;
  const std::string text = Scrape(OnGpuNode({gpu}));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_up{gpu=\"0\",gpu_uuid=\"GPU-7\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_power_watts{gpu=\"0\",gpu_uuid=\"GPU-7\"} 0\n"));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_"), 8u);  // these, info and five states of health
}

TEST(SnapshotGpus, WhatIsNotUpHasNoNumbers) {
  GpuStatus hung = UpGpu(0);
  hung.state = GpuState::kUnresponsive;
  GpuStatus denied = LostGpu(2);
  denied.state = GpuState::kDenied;
  const std::string text = Scrape(OnGpuNode({hung, LostGpu(1), denied}));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_up{gpu=\"0\",gpu_uuid=\"GPU-0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_health{gpu=\"0\",gpu_uuid=\"GPU-0\","
                              "state=\"unresponsive\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("rankscope_gpu_health{gpu=\"1\",gpu_uuid=\"GPU-1\",state=\"lost\"} 1\n"));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_health{gpu=\"2\""), 0u);
  // What the kernel's log said of it is told all the more.
  EXPECT_THAT(
      text,
      HasSubstr("rankscope_gpu_xid_errors_total{gpu=\"0\",gpu_uuid=\"GPU-0\",xid=\"79\"} 2\n"));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_"), 3u * 2 + 2 * 5 + 2);
}

TEST(SnapshotGpus, LinksAndPlacesAreSummedButInTheFullProfile) {
  const Published published = OnGpuNode({UpGpu(0)});
  const std::string text = Scrape(published);
  EXPECT_EQ(CountOf(text, "rankscope_gpu_ecc_errors_total"), 4u);
  EXPECT_EQ(CountOf(text, "rankscope_gpu_nvlink_errors_total"), 5u);
  EXPECT_THAT(text, HasSubstr("location=\"all\""));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_nvlink_up"), 0u);
  EXPECT_EQ(CountOf(text, "rankscope_gpu_pipe_active_ratio"), 1u);
  const std::string full = Scrape(published, {.profile = Profile::kFull});
  EXPECT_EQ(CountOf(full, "rankscope_gpu_ecc_errors_total"), 4u * kEccLocations.size());
  EXPECT_THAT(full, Not(HasSubstr("\"all\"")));
  EXPECT_EQ(CountOf(full, "rankscope_gpu_nvlink_up"), 2u);
  EXPECT_EQ(CountOf(full, "rankscope_gpu_nvlink_errors_total"), 5u);  // of the link that tells
  EXPECT_EQ(CountOf(full, "rankscope_gpu_pipe_active_ratio"), kGpuPipes.size());
}

TEST(SnapshotGpus, EightFitBesideAJob) {
  std::vector<GpuStatus> gpus;
  for (int32_t i = 0; i < 8; ++i) gpus.push_back(UpGpu(i));
  const std::string text = Scrape(OnGpuNode(gpus, {HealthyJob()}));
  for (const char* reason : {"cap_gpu", "cap_gpu_detail", "cap_rank"}) {
    EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"" + std::string(reason) +
                                "\"} 0\n"));
  }
}

TEST(SnapshotGpus, DetailsGoBeforeRanksAndRanksBeforeWhatMatters) {
  std::vector<GpuStatus> gpus;
  for (int32_t i = 0; i < 16; ++i) gpus.push_back(UpGpu(i));
  const Published published = OnGpuNode(gpus, {HealthyJob()});
  const std::string some = Scrape(published, {.max_series = 1300});
  EXPECT_EQ(CountOf(some, "rankscope_gpu_power_watts"), 16u);
  EXPECT_EQ(CountOf(some, "rankscope_rank_alive"), 2u);
  EXPECT_LT(CountOf(some, "rankscope_gpu_energy_joules_total"), 16u);
  EXPECT_THAT(some, HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank\"} 0\n"));
  EXPECT_THAT(some,
              Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_gpu_detail\"} 0\n")));
  const std::string few = Scrape(published, {.max_series = 400});
  EXPECT_EQ(CountOf(few, "rankscope_verdict{"), families::FamilyNames().size());
  EXPECT_EQ(CountOf(few, "rankscope_rank_alive"), 0u);
}

}  // namespace
}  // namespace rankscope::metrics
