// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Published states as the agent would publish them, for tests of everything that reads one: fixed
// numbers, no clock.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/families/family_names.h"
#include "exporter/metrics/published.h"

namespace rankscope::test {

inline constexpr double kWallSeconds = 1780000000;  // the tick's wall time, unless a test moves it

inline int64_t WallNs(double seconds) {
  return std::llround(seconds * 1e9);
}

inline void SetFamily(JobStatus& job, std::string_view code, double confidence,
                      std::string_view severity) {
  const families::FamilyName name = families::FindFamily(code);
  proto::Verdict& verdict = job.verdict;
  verdict.set_code(std::string(name.code));
  verdict.set_family(std::string(name.family));
  verdict.set_confidence(confidence);
  verdict.mutable_triage()->set_severity(std::string(severity));
  verdict.clear_families();
  for (const families::FamilyName& family : families::FamilyNames()) {
    proto::FamilyState& state = *verdict.add_families();
    state.set_code(std::string(family.code));
    if (family.code == code) {
      state.set_state(proto::FamilyState::RULED_IN);
      state.set_score(confidence);
    } else if (family.code == "B2") {
      state.set_state(proto::FamilyState::NOT_DECIDABLE);
      state.set_needs(proto::STORE_GPU);
      state.set_why(proto::UNSUPPORTED);
    } else {
      state.set_state(proto::FamilyState::RULED_OUT);
      state.set_by("no sign of it in 120 log lines");
    }
  }
}

// Two ranks of a job that trains well.
inline JobStatus HealthyJob(std::string job_id = "8841") {
  JobStatus job;
  job.job_id = job_id;
  job.user = "ada";
  job.command = "python train.py --lr 3e-4";
  job.world_size = 2;
  job.facts.name = "llama \"7b\"";
  job.facts.account = "science";
  job.facts.partition = "gpu";
  job.facts.qos = "normal";
  job.facts.array_job_id = "8840";
  job.facts.array_task = "1";
  job.facts.nodes = "1";
  job.facts.tasks = "2";
  job.facts.dependency = "afterany:8839";
  job.facts.launcher = "srun";
  job.verdict_changes = 1;
  job.training = {
      .recognised = true, .framework = "hf_trainer", .records = 120, .nonfinite_loss = 0};
  for (const auto& [signal, value] : {std::pair{SignalId::kStep, 120.0},
                                      {SignalId::kMaxSteps, 1000.0},
                                      {SignalId::kEpoch, 0.12},
                                      {SignalId::kLoss, 2.3125},
                                      {SignalId::kLossFirst, 10.5},
                                      {SignalId::kLossMin, 2.25},
                                      {SignalId::kLossSlope, -0.0125},
                                      {SignalId::kGradNorm, 1.5},
                                      {SignalId::kLearningRate, 3e-4},
                                      {SignalId::kStepSeconds, 0.125},
                                      {SignalId::kLastStepTimestamp, kWallSeconds - 0.5}})
    job.signals.Set(signal, value);
  job.checkpoints = {.saves = 2,
                     .files_seen = true,
                     .newest_whole = true,
                     .last_wall_seconds = kWallSeconds - 4,
                     .last_seconds = 1.5,
                     .last_bytes = 268435456,
                     .interval_seconds = 6.25,
                     .free_bytes = 4294967296,
                     .full_in_seconds = 100,
                     .work_at_risk_seconds = 11};
  job.rdma = {.received_bytes = 2147483648, .sent_bytes = 1073741824, .ports_down = 1};
  job.suspension = {.now = 0, .total_seconds = 35};
  job.rdma.errors.fill(-1);
  job.rdma.errors[0] = 12;
  job.rdma.errors[3] = 0;
  for (int32_t rank = 0; rank < 2; ++rank) {
    RankStatus status;
    status.rank = rank;
    status.local_rank = rank;
    status.place = {"0", 0, 2, "n1", std::string(64, 'c'), {}, "n1"};
    status.process = {4000 + rank, 777};
    status.alive = true;
    status.signals.Set(SignalId::kCpuSeconds, 33.25 + rank);
    status.signals.Set(SignalId::kResidentBytes, 1073741824);
    status.signals.Set(SignalId::kThreads, 18);
    status.signals.Set(SignalId::kCollectivesCompleted, 960);
    status.signals.Set(SignalId::kCollectivesInFlight, 1);
    status.signals.Set(SignalId::kOldestCollectiveSeconds, 0.015625);
    job.ranks.push_back(status);
  }
  job.gpus = {{0, "GPU-0", "slurm", true, {0, 1}}, {1, "GPU-1", "slurm", false, {}}};
  job.logs.push_back({"stdout", 120, 9600, 0, 1});
  job.logs.push_back({"stderr", 3, 200, 16, 0});

  proto::Verdict& verdict = job.verdict;
  verdict.set_job_id(job_id);
  verdict.mutable_attempt()->set_ordinal(1);
  verdict.set_state(proto::LIVE);
  verdict.set_revision(1);
  verdict.set_scope(proto::SCOPE_JOB);
  verdict.set_node("n1");
  verdict.set_domain(proto::DOMAIN_WORKLOAD);
  verdict.set_tier(proto::TIER_C);
  verdict.set_phase(proto::PHASE_TRAIN);
  verdict.set_framework("hf_trainer");
  verdict.set_detected_ns(WallNs(kWallSeconds - 10));
  verdict.set_updated_ns(WallNs(kWallSeconds - 10));
  verdict.mutable_triage()->set_running(true);
  proto::Evidence& evidence = *verdict.add_shows();
  evidence.set_id(0);
  evidence.set_store(proto::STORE_LOG);
  evidence.set_text("loss fell from 10.5 to 2.3125 in 120 steps");
  evidence.set_observed(2.3125);
  evidence.mutable_cite()->mutable_log()->set_stream("stdout");
  evidence.mutable_cite()->mutable_log()->set_offset(9520);
  evidence.mutable_cite()->mutable_log()->set_line("{'loss': 2.3125, 'epoch': 0.12}");
  SetFamily(job, "G1", 0.85, "ok");
  return job;
}

// The same job frozen in a collective.
inline JobStatus HangingJob(std::string job_id = "8841") {
  JobStatus job = HealthyJob(std::move(job_id));
  SetFamily(job, "C2", 0.65, "critical");
  job.verdict_changes = 2;
  job.verdict.set_revision(2);
  job.verdict.set_onset_ns(WallNs(kWallSeconds - 90.5));
  job.verdict.set_updated_ns(WallNs(kWallSeconds - 1));
  job.verdict.set_domain(proto::DOMAIN_UNKNOWN);
  proto::Cause& cause = *job.verdict.add_cause_chain();
  cause.set_evidence(0);
  cause.set_role(proto::Cause::ROOT);
  proto::Warning& warning = *job.verdict.add_warnings();
  warning.set_kind("straggler_mild");
  warning.set_subject("rank 1");
  warning.set_text("rank 1 is 6 % slower than the median");
  for (RankStatus& rank : job.ranks) rank.signals.Set(SignalId::kOldestCollectiveSeconds, 90.5);
  return job;
}

// Gaps between launches, three of them longer than any bound.
inline void AddLaunchGaps(RankStatus& rank) {
  rank.launch_gaps_counted = true;
  rank.launch_gaps.fill(0);
  rank.launch_gaps[0] = 100'000;
  rank.launch_gaps[5] = 40;
  rank.launch_gaps[10] = 2;
  rank.launch_gaps.back() = 3;
  rank.signals.Set(SignalId::kLaunchGapSeconds, 312.5);
}

// It has ended by itself, `ago` seconds before the tick.
inline JobStatus FinishedJob(std::string job_id, double ago) {
  JobStatus job = HealthyJob(std::move(job_id));
  job.running = false;
  for (RankStatus& rank : job.ranks) rank.alive = false;
  job.verdict.set_state(proto::FINAL);
  job.verdict.set_phase(proto::PHASE_ENDED);
  job.verdict.mutable_triage()->set_running(false);
  job.verdict.set_updated_ns(WallNs(kWallSeconds - ago));
  return job;
}

// A GPU of which everything is known; no two values are the same.
inline GpuStatus UpGpu(int32_t index) {
  GpuStatus gpu;
  gpu.identity = {index,
                  "GPU-" + std::to_string(index),
                  "NVIDIA H100 80GB HBM3",
                  "0000:18:00.0",
                  "16511230111",
                  "550.54.15"};
  gpu.state = GpuState::kUp;
  GpuReading& r = gpu.reading;
  double next = 0;
  const auto fill = [&next](auto&... values) { ((values = ++next), ...); };
  const auto fill_each = [&next](auto& values) {
    for (GpuValue& value : values) value = ++next;
  };
  fill(r.memory_total_bytes, r.memory_used_bytes, r.memory_free_bytes, r.memory_reserved_bytes,
       r.bar1_used_bytes, r.engine_active, r.memory_busy, r.encoder_active, r.decoder_active,
       r.sm_active, r.sm_occupancy, r.dram_active, r.remapped_correctable, r.remapped_uncorrectable,
       r.remap_pending, r.remap_failed, r.retired_single_bit, r.retired_double_bit,
       r.retired_pending, r.nvlink_received_bytes, r.nvlink_sent_bytes, r.pcie_generation,
       r.pcie_generation_max, r.pcie_width, r.pcie_width_max, r.pcie_replays, r.pcie_received_bytes,
       r.pcie_sent_bytes, r.thermal_throttled_seconds, r.temperature_celsius,
       r.memory_temperature_celsius, r.temperature_margin_celsius, r.fan_ratio, r.power_watts,
       r.energy_joules, r.performance_state, r.graphics_processes);
  for (auto& scopes : r.ecc) {
    for (auto& locations : scopes) fill_each(locations);
  }
  for (auto& scopes : r.ecc_total) fill_each(scopes);
  fill_each(r.pipe_active);
  fill_each(r.remap_banks);
  fill_each(r.nvlink_errors);
  fill_each(r.clock_hertz);
  fill_each(r.clock_max_hertz);
  fill_each(r.throttled_seconds);
  fill_each(r.temperature_threshold_celsius);
  fill_each(r.power_limit_watts);
  fill_each(r.violation_seconds);
  fill(r.pcie_received_rate, r.pcie_sent_rate, r.nvlink_received_rate, r.nvlink_sent_rate,
       r.vgpu_licensed);
  r.gpm = true;
  r.throttle_bits = 0x1 | 0x40;
  r.fabric_state = 3;
  r.recovery_action = 1;
  r.ecc_enabled = r.persistence_enabled = r.mig_enabled = 1;
  r.exclusive = 0;
  r.mig_instances = {{"MIG-0", 1 << 20, 1 << 24}, {"MIG-1", 0, std::nullopt}};
  r.throttled_by_card[2] = true;
  r.compute_processes = {{4000, 1024, -1}, {99, std::nullopt, -1}};
  r.links.push_back({0, true, {1, 2, 3, 4, 5}, 25e9});
  r.links.push_back({1, false, {}, std::nullopt});
  return gpu;
}

inline GpuStatus LostGpu(int32_t index) {
  GpuStatus gpu;
  gpu.identity.index = index;
  gpu.identity.uuid = "GPU-" + std::to_string(index);
  gpu.state = GpuState::kLost;
  gpu.reason = "NVML: GPU is lost";
  return gpu;
}

inline metrics::SourceStatus GpuSource(std::vector<GpuStatus> gpus) {
  metrics::SourceStatus source;
  source.name = "nvml";
  source.state = Availability::kUp;
  source.gpus = std::make_shared<const std::vector<GpuStatus>>(std::move(gpus));
  return source;
}

// Of an instance beside the controller, where one node of two is out of service.
inline metrics::SourceStatus SlurmSource() {
  metrics::SourceStatus source{"slurm", Availability::kUp, "", 0, 0, kUnknown, {}};
  source.library_calls = {{"scontrol show job", {0, 0, 40, 2}, 0.75, {{"timeout", 3}}},
                          {"sacct", {}, 0, {}}};
  auto report = std::make_shared<SlurmReport>();
  report->events = std::make_shared<const std::deque<std::shared_ptr<const SlurmEvent>>>();
  report->counts = {{"submitted", 12}, {"preempted", 0}};
  report->last_answer_wall_seconds = kWallSeconds - 10;
  report->nodes = {
      {"n1", "up", "", "", 0, 0, 1.5, 64, 16, 8, 2, int64_t{1} << 38, int64_t{1} << 36,
       int64_t{1} << 37},
      {"n2", "down", "not_responding", "Not responding", 3600, 60, -1, 64, 0, 8, 0, -1, -1, -1}};
  report->controller = {3,    1,   0,     12,     11,      9, 1,  1,
                        0.25, 0.5, 0.125, 0.0625, 0.03125, 4, 20, {{"REQUEST_JOB_INFO", 400, 1.5}}};
  report->controller_known = true;
  SlurmQueue queue;
  queue.partitions = {{"gpu", "", {7, 0, 3, 0, 1}}, {"long", "", {}}};
  queue.users = {{"ada", "science", {6, 0, 1, 0, 0}}, {"bob", "", {1, 0, 2, 0, 1}}};
  queue.waits = {{"Priority", 5}, {"Dependency", 2}};
  queue.nodes = {0, 1, 0, 1, 0, 0, 0, 0};
  queue.resources = {{"gpu", {128, 16, 48}, {16, 2, 6}, {int64_t{1} << 39, int64_t{1} << 36, 0}}};
  report->queue = std::make_shared<const SlurmQueue>(std::move(queue));
  report->steps = {{"8850", "0", "train", "n1", "1:0", "OUT_OF_MEMORY"},
                   {"8850", "1", "eval \"a\\b\nc\"", "n1", "", "RUNNING"}};
  source.slurm = std::move(report);
  return source;
}

inline metrics::JobList Shared(std::vector<JobStatus> jobs) {
  metrics::JobList shared;
  for (JobStatus& job : jobs) shared.push_back(std::make_shared<const JobStatus>(std::move(job)));
  return shared;
}

inline metrics::Published OnNode(std::vector<JobStatus> jobs) {
  metrics::Published published;
  published.tick = {1'000'000'000'000};
  published.wall_seconds = kWallSeconds;
  published.agent.version = "0.1.0";
  published.agent.node = "n1";
  published.agent.start_wall_seconds = kWallSeconds - 1000;
  published.agent.ready = true;
  published.agent.config.good_wall_seconds = kWallSeconds - 1000;
  published.agent.web_config = {false, kWallSeconds - 500};
  published.agent.max_jobs = 256;
  published.agent.memory_limit_bytes = 96 << 20;
  published.agent.memory_used_bytes = 40 << 20;
  published.agent.sources.push_back(
      {"procfs", Availability::kUp, "", 0, 5000, kWallSeconds - 0.25, {}});
  published.agent.sources.push_back({"proc_connector",
                                     Availability::kDenied,
                                     "proc_connector: not permitted; give CAP_NET_ADMIN",
                                     0,
                                     0,
                                     kUnknown,
                                     {}});
  published.agent.sources.push_back({"stdio",
                                     Availability::kUp,
                                     "",
                                     4096,
                                     900,
                                     kWallSeconds - 0.5,
                                     {{"captured", 65536},
                                      {"over_budget", 4096},
                                      {"not_output", 512},
                                      {"hook_fexit", 0},
                                      {"hook_tracepoint", 1},
                                      {"hook_raw", 0}}});
  published.agent.sources.push_back(
      {"run", Availability::kUp, "", 0, 40, kWallSeconds - 0.5, {{"refused", 0}, {"denied", 3}}});
  published.agent.sources.push_back(
      {"kmsg", Availability::kUp, "", 0, 3, kWallSeconds - 0.5, {{"xid", 2}, {"hung_task", 0}}});
  published.agent.sources.back().xids = {{"0000:18:00", 79, 2, kWallSeconds - 4},
                                         {"0000:ff:00", 13, 1, kWallSeconds - 4}};
  published.agent.sources.back().xids_heard = true;
  published.agent.sources.back().sxids = {{24007, true, 1}, {11004, false, 7}};
  published.agent.sources.back().xids_pending = {{"0000:18:00", {false, true, false}, 79, {}}};
  published.agent.sources.push_back({"cuda",
                                     Availability::kUp,
                                     "launches are counted part of the time",
                                     0,
                                     700,
                                     kWallSeconds - 0.5,
                                     {},
                                     {{"launch_driver", {"emulated"}, 1'000'000, 0.5, 0.25},
                                      {"launch_runtime", {"push", "single_step"}, 64, 0.125, 0},
                                      {"launch_return", {}, 0, 0, 0},
                                      {"call", {"push"}, 4096, 0.03125, 1}}});
  published.agent.sources.push_back(SlurmSource());
  published.agent.engine = {5120, 1, 7, 0};
  published.agent.recorder_bytes = 40960;
  published.agent.tick_seconds = 0.000244140625;
  published.jobs = Shared(std::move(jobs));
  return published;
}

}  // namespace rankscope::test
