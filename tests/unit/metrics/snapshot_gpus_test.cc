// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// GPUs on /metrics: what is absent has no series, what is not up has no numbers, and the cap.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "exporter/metrics/encoder.h"
#include "exporter/metrics/snapshot.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

using test::FinishedJob;
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
  // These, info, five states of health, and four of what its Xids ask for.
  EXPECT_EQ(CountOf(text, "rankscope_gpu_"), 12u);
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
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_xid_pending_action{gpu=\"0\",gpu_uuid=\"GPU-0\","
                              "action=\"reboot\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_xid_pending_action{gpu=\"0\",gpu_uuid=\"GPU-0\","
                              "action=\"none\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_xid_pending_action{gpu=\"1\",gpu_uuid=\"GPU-1\","
                              "action=\"none\"} 1\n"));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_"), 3u * 2 + 2 * 5 + 2 + 3 * 4);
}

TEST(SnapshotGpus, WhereNobodyTellsOfXidsNothingIsSaidOfThem) {
  Published published = OnGpuNode({UpGpu(0)});
  for (SourceStatus& source : published.agent.sources) {
    source.xids_heard = false;
    source.xids.clear();
    source.xids_pending.clear();
  }
  EXPECT_EQ(CountOf(Scrape(published), "rankscope_gpu_xid_"), 0u);
}

TEST(SnapshotGpus, WhoseACardIs) {
  JobStatus other = HealthyJob("8842");
  other.gpus = {{1, "GPU-1", "uuid", true, {3}}};
  std::string text = Scrape(OnGpuNode({UpGpu(0)}, {HealthyJob(), other}));
  EXPECT_THAT(text, HasSubstr("rankscope_job_gpu{job_id=\"8841\",gpu=\"1\",gpu_uuid=\"GPU-1\","
                              "source=\"slurm\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_job_gpu_attached{job_id=\"8841\",gpu=\"1\","
                              "gpu_uuid=\"GPU-1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_job_gpu_share_ratio{job_id=\"8841\",gpu=\"0\","
                              "gpu_uuid=\"GPU-0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_job_gpu_share_ratio{job_id=\"8842\",gpu=\"1\","
                              "gpu_uuid=\"GPU-1\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_rank_gpu_info{job_id=\"8842\",rank=\"3\",gpu=\"1\","
                              "gpu_uuid=\"GPU-1\"} 1\n"));
  EXPECT_EQ(CountOf(text, "rankscope_rank_gpu_info{job_id=\"8841\""), 2u);
  // A job that has ended has none, and no part in another's.
  text = Scrape(OnGpuNode({UpGpu(0)}, {FinishedJob("8841", 1), other}));
  EXPECT_EQ(CountOf(text, "rankscope_job_gpu{job_id=\"8841\""), 0u);
  EXPECT_THAT(text, HasSubstr("rankscope_job_gpu_share_ratio{job_id=\"8842\",gpu=\"1\","
                              "gpu_uuid=\"GPU-1\"} 1\n"));
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

TEST(SnapshotGpus, ARanksMemoryIsThatOfItsProcess) {
  JobStatus job = HealthyJob();  // its rank 0 is process 4000, its rank 1 4001
  GpuStatus gpu = UpGpu(0);
  gpu.reading.compute_processes = {
      {4000, 1024, 1}, {4000, 2048, 2}, {4001, std::nullopt, -1}, {99, 7, -1}};
  const std::string text = Scrape(OnGpuNode({gpu}, {job}));
  EXPECT_THAT(text,
              HasSubstr("rankscope_gpu_process_memory_used_bytes{gpu=\"0\",gpu_uuid=\"GPU-0\","
                        "job_id=\"8841\",rank=\"0\"} 3072\n"));
  EXPECT_EQ(CountOf(text, "rankscope_gpu_process_memory_used_bytes"), 1u);
  for (RankStatus& rank : job.ranks) rank.alive = false;  // its pid is another's by now
  EXPECT_EQ(CountOf(Scrape(OnGpuNode({gpu}, {job})), "rankscope_gpu_process_memory_used_bytes"),
            0u);
}

TEST(SnapshotGpus, WhoCountsThrottledTimeIsTold) {
  const std::string text = Scrape(OnGpuNode({UpGpu(0)}), {.profile = Profile::kFull});
  EXPECT_THAT(text, HasSubstr("reason=\"sw_power_cap\",source=\"card\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("reason=\"hw_slowdown\",source=\"looks\"} 1\n"));
}

TEST(SnapshotGpus, DcgmsNamesAreShownWhenTheyAreAskedFor) {
  GpuStatus gpu = UpGpu(0);
  gpu.reading.memory_used_bytes = (40.0 * 1024 + 0.5) * 1048576;
  gpu.reading.energy_joules = 12.3456;
  gpu.reading.clock_hertz[1] = 1980e6;
  gpu.reading.pcie_sent_rate = 7e6;
  gpu.reading.nvlink_received_rate = 2 * 1048576;
  gpu.reading.nvlink_sent_rate = 1.5 * 1048576;
  gpu.reading.violation_seconds[0] = 1.5;
  gpu.reading.memory_temperature_celsius.reset();
  const Published published = OnGpuNode({gpu, LostGpu(1)});
  EXPECT_EQ(CountOf(Scrape(published), "DCGM_"), 0u);
  const std::string text = Scrape(published, {.dcgm_names = true});
  const std::string full = Scrape(published, {.profile = Profile::kFull, .dcgm_names = true});
  EXPECT_EQ(CountOf(Scrape(published, {.profile = Profile::kFull}), "DCGM_"), 0u);
  for (const MetricRow& row : kDcgmRows) {
    const size_t known = row.name == "DCGM_FI_DEV_MEMORY_TEMP" ? 0 : 1;
    const std::string start = std::string(row.name) + "{";
    EXPECT_EQ(CountOf(full, start), known) << row.name;
    EXPECT_EQ(CountOf(text, start), IsOfFullProfile(row.profile) ? 0 : known) << row.name;
  }
  const std::string labels =
      "{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"0000:18:00.0\",device=\"nvidia0\","
      "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"n1\",DCGM_FI_DRIVER_VERSION=\"550.54.15\"} ";
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_FB_USED" + labels + "40960\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + "12345\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_SM_CLOCK" + labels + "1980\n"));
  // Rates are gauges, of bytes and, in sum, of MiB; violations are nanoseconds.
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_PROF_PCIE_TX_BYTES gauge\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_PROF_PCIE_TX_BYTES" + labels + "7000000\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_PROF_NVLINK_RX_BYTES" + labels + "2097152\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL gauge\n"));
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" + labels + "3\n"));
  EXPECT_THAT(full, HasSubstr("# TYPE DCGM_FI_DEV_POWER_VIOLATION counter\n"));
  EXPECT_THAT(full, HasSubstr("DCGM_FI_DEV_POWER_VIOLATION" + labels + "1500000000\n"));
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_MEMORY_TEMP"), 0u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_POWER_USAGE"), 1u);  // the lost one has none
  std::string open;
  AppendOpenMetrics(*SnapshotBuilder({.dcgm_names = true}).Build(published), open);
  EXPECT_THAT(open, HasSubstr("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"));
  EXPECT_THAT(open, HasSubstr("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" + labels + "12345\n"));
}

TEST(SnapshotGpus, DcgmsXidHasItsCodeAndWhatItMeans) {
  Published published = OnGpuNode({UpGpu(0)});
  const SnapshotOptions options{.dcgm_names = true};
  EXPECT_THAT(Scrape(published, options),
              HasSubstr("DCGM_FI_DRIVER_VERSION=\"550.54.15\",err_code=\"79\","
                        "err_msg=\"the GPU has fallen off the bus\"} 79\n"));
  for (SourceStatus& source : published.agent.sources) {
    for (XidStatus& xid : source.xids) xid.code = 9999;
  }
  EXPECT_THAT(Scrape(published, options),
              HasSubstr("err_code=\"9999\",err_msg=\"Unknown Error\"} 9999\n"));
  for (SourceStatus& source : published.agent.sources) source.xids.clear();
  EXPECT_THAT(Scrape(published, options), HasSubstr("err_code=\"0\",err_msg=\"No Error\"} 0\n"));
}

TEST(SnapshotGpus, DcgmsNamesHaveTheJobsOfAPrologsFiles) {
  JobStatus job = HealthyJob("8841");
  job.gpus = {{0, "GPU-0", "mapping", true, {0}}};
  JobStatus other = HealthyJob("8842");
  other.gpus = {{0, "GPU-0", "slurm", true, {0}}, {1, "GPU-1", "uuid", true, {0}}};
  Published published = OnGpuNode({UpGpu(0), UpGpu(1)}, {job, other});
  const SnapshotOptions options{.dcgm_names = true};
  EXPECT_THAT(Scrape(published, options), Not(HasSubstr("hpc_job")));  // nobody reads such files
  SourceStatus mapping;
  mapping.name = "job_mapping";
  mapping.state = Availability::kUp;
  published.agent.sources.push_back(mapping);
  const std::string text = Scrape(published, options);
  const auto temperatures = [&text](const std::string& gpu) {
    return CountOf(text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"" + gpu + "\"");
  };
  EXPECT_EQ(temperatures("0"), 2u);  // one of each job
  EXPECT_THAT(text, HasSubstr("DCGM_FI_DRIVER_VERSION=\"550.54.15\",hpc_job=\"8841\"} "));
  EXPECT_THAT(text, HasSubstr("err_msg=\"the GPU has fallen off the bus\",hpc_job=\"8842\"} 79\n"));
  EXPECT_EQ(temperatures("1"), 1u);  // what an environment says is no prolog's word
  EXPECT_THAT(text, Not(HasSubstr("hpc_job=\"\"")));
}

TEST(SnapshotGpus, DcgmsNamesHaveThePodsOfAKubelet) {
  GpuStatus parted = UpGpu(1);
  parted.reading.mig_instances = {{"MIG-9", 1 << 20, 3 << 20, 2 << 20, 7, "1g.10gb"}};
  Published published = OnGpuNode({UpGpu(0), parted, UpGpu(2), UpGpu(3)});
  SourceStatus kubelet;
  kubelet.name = "kubelet";
  const auto given = [](std::string uuid, std::vector<GpuPod> pods) {
    GpuProfile profile;
    profile.uuid = std::move(uuid);
    profile.pods = std::move(pods);
    return profile;
  };
  kubelet.gpu_profiles = std::make_shared<const std::vector<GpuProfile>>(std::vector{
      given("GPU-0", {{"train-0", "ml", "main"}}), given("MIG-9", {{"serve-1", "ml", "web"}}),
      given("nvidia2", {{"a", "x", "c"}, {"b", "x", "c"}})});
  published.agent.sources.push_back(kubelet);
  const std::string text = Scrape(published, {.dcgm_names = true});
  const std::string driver = "DCGM_FI_DRIVER_VERSION=\"550.54.15\"";
  EXPECT_THAT(text, HasSubstr("Hostname=\"n1\"," + driver +
                              ",container=\"main\",namespace=\"ml\",pod=\"train-0\"} "));
  EXPECT_THAT(text, HasSubstr(driver + ",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\","
                                       "container=\"web\",namespace=\"ml\",pod=\"serve-1\"} 1\n"));
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"2\""), 2u);  // shared by turns
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_GPU_TEMP{gpu=\"3\""), 1u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_GPU_TEMP"), 5u);
  // No metric of our own has them: they are the scraper's.
  for (size_t at = text.find("pod=\""); at != text.npos; at = text.find("pod=\"", at + 1))
    EXPECT_EQ(text.compare(text.rfind('\n', at) + 1, 5, "DCGM_"), 0);
}

TEST(SnapshotGpus, DcgmsNamesTellOfMigInstances) {
  GpuStatus gpu = UpGpu(0);
  GpuMigInstance part{"MIG-0", 1 << 20, 3 << 20, 2 << 20, 7, "1g.10gb"};
  part.engine_active = 0.25;
  GpuMigInstance same = part;  // another of its compute instances
  same.uuid = "MIG-1";
  GpuMigInstance unknown{"MIG-2", 5 << 20, 6 << 20};
  gpu.reading.mig_instances = {part, same, unknown};
  const std::string text = Scrape(OnGpuNode({gpu}), {.dcgm_names = true});
  const std::string labels =
      "DCGM_FI_DRIVER_VERSION=\"550.54.15\",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"7\"} ";
  EXPECT_THAT(text, HasSubstr(labels + "0.25\n"));
  // The whole card's would be counted twice in a sum.
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_FB_USED"), 1u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_FB_FREE"), 1u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), 1u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_PROF_SM_ACTIVE"), 0u);
  EXPECT_EQ(CountOf(text, "DCGM_FI_DEV_POWER_USAGE"), 1u);  // is of the whole card
}

TEST(SnapshotGpus, DcgmsNamesYieldToADcgmExporterThatStartsLater) {
  Published published = OnGpuNode({UpGpu(0)});
  SourceStatus dcgm;
  dcgm.name = "dcgm";
  dcgm.state = Availability::kNotApplicable;
  published.agent.sources.push_back(dcgm);
  const auto shown = [&published](SnapshotBuilder& builder) {
    std::string text;
    AppendText(*builder.Build(published), text);
    return CountOf(text, "DCGM_FI_DEV_GPU_TEMP") > 0;
  };
  SnapshotBuilder builder({.dcgm_names = true, .dcgm_names_yield = true});
  SnapshotBuilder told({.dcgm_names = true});
  EXPECT_TRUE(shown(builder));
  published.agent.sources.back().state = Availability::kDown;  // it may be anybody
  EXPECT_TRUE(shown(builder));
  published.agent.sources.back().state = Availability::kUp;
  EXPECT_FALSE(shown(builder));
  EXPECT_TRUE(shown(told));
  published.agent.sources.back().state = Availability::kNotApplicable;
  EXPECT_FALSE(shown(builder));  // names do not come and go
}

TEST(SnapshotGpus, DcgmFillsWhatTheCardDoesNotCount) {
  GpuStatus gpu = UpGpu(0);
  gpu.reading.gpm = false;
  gpu.reading.sm_active.reset();
  Published published = OnGpuNode({gpu, UpGpu(1)});
  SourceStatus dcgm;
  dcgm.name = "dcgm";
  GpuProfile profile;
  profile.uuid = "GPU-0";
  profile.sm_active = 0.5;
  profile.pcie_sent_bytes = 7;
  dcgm.gpu_profiles = std::make_shared<const std::vector<GpuProfile>>(1, profile);
  published.agent.sources.push_back(dcgm);
  const std::string text = Scrape(published);
  EXPECT_THAT(text, HasSubstr("rankscope_gpu_sm_active_ratio{gpu=\"0\",gpu_uuid=\"GPU-0\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("gpu_uuid=\"GPU-0\",source=\"dcgm\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gpu_uuid=\"GPU-1\",source=\"gpm\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("rankscope_gpu_pcie_transmit_bytes_total{gpu=\"0\","
                                  "gpu_uuid=\"GPU-0\"} 7\n")));
  // A card that has counted its own bytes never has another's: a counter does not jump.
  SnapshotBuilder builder;
  std::string first, then;
  AppendText(*builder.Build(published), first);
  gpu.reading.pcie_received_bytes = gpu.reading.pcie_sent_bytes = std::nullopt;
  gpu.reading.nvlink_received_bytes = gpu.reading.nvlink_sent_bytes = std::nullopt;
  for (SourceStatus& source : published.agent.sources) {
    if (source.gpus) source.gpus = std::make_shared<const std::vector<GpuStatus>>(1, gpu);
  }
  AppendText(*builder.Build(published), then);
  EXPECT_EQ(CountOf(then, "rankscope_gpu_pcie_transmit_bytes_total"), 0u);
  EXPECT_EQ(CountOf(Scrape(published), "rankscope_gpu_pcie_transmit_bytes_total"), 1u);
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

TEST(SnapshotGpus, JobsThatHaveEndedDoNotHideThem) {
  std::vector<GpuStatus> gpus;
  for (int32_t i = 0; i < 8; ++i) gpus.push_back(UpGpu(i));
  std::vector<JobStatus> jobs = {HealthyJob()};
  for (int i = 0; i < 60; ++i) jobs.push_back(FinishedJob(std::to_string(i), 5));
  const std::string text = Scrape(OnGpuNode(gpus, jobs), {.max_series = 2000});
  EXPECT_EQ(CountOf(text, "rankscope_gpu_power_watts"), 8u);
  EXPECT_EQ(CountOf(text, "rankscope_rank_alive"), 2u);
  EXPECT_EQ(CountOf(text, "rankscope_verdict_info"), 61u);
  for (const char* reason : {"cap_gpu", "cap_gpu_detail", "cap_rank_detail"}) {
    EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"" + std::string(reason) +
                                "\"} 0\n"));
  }
  EXPECT_THAT(text, Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_ended\"} 0\n")));
}

TEST(SnapshotGpus, RanksGoBeforeDetailsAndDetailsBeforeWhatMatters) {
  std::vector<GpuStatus> gpus;
  for (int32_t i = 0; i < 16; ++i) gpus.push_back(UpGpu(i));
  const Published published = OnGpuNode(gpus, {HealthyJob()});
  const auto all =
      static_cast<int32_t>(SnapshotBuilder({.max_series = 16000}).Build(published)->SeriesCount());
  const std::string most = Scrape(published, {.max_series = all - 4});
  EXPECT_THAT(most, HasSubstr("rankscope_series_dropped_total{reason=\"cap_gpu_detail\"} 0\n"));
  EXPECT_THAT(most,
              Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank_detail\"} 0\n")));
  EXPECT_EQ(CountOf(most, "rankscope_rank_alive"), 2u);
  const std::string some = Scrape(published, {.max_series = all - 300});
  EXPECT_EQ(CountOf(some, "rankscope_gpu_power_watts"), 16u);
  EXPECT_EQ(CountOf(some, "rankscope_verdict{"), 1u);
  EXPECT_THAT(some, HasSubstr("rankscope_series_dropped_total{reason=\"cap_gpu\"} 0\n"));
  EXPECT_THAT(some,
              Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_gpu_detail\"} 0\n")));
}

}  // namespace
}  // namespace rankscope::metrics
