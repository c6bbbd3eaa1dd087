// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of the exporter itself and of jobs.
#include "exporter/metrics/snapshot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "detectors/document/verdict_words.h"
#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

// Warnings come from a closed list; this bounds a job's series should it ever grow beyond.
constexpr size_t kMaxWarningsPerJob = 32;
// stdout, stderr and a few files; more streams are summed as "other".
constexpr size_t kMaxStreamsPerJob = 16;

// One log stream's name without its folder: paths do not stand in labels of data. Nor do processes:
// "rank 3 stderr, python3 (pid 77)" counts as "rank 3 stderr", "stderr of torchrun (pid 70)" as
// "stderr".
std::string_view StreamName(std::string_view stream) {
  const size_t slash = stream.rfind('/');
  if (slash != std::string_view::npos) stream.remove_prefix(slash + 1);
  if (stream.ends_with(')') && stream.find(" (pid ") != std::string_view::npos) {
    stream = stream.substr(0, std::min(stream.find(", "), stream.find(" of ")));
  }
  return stream;
}

}  // namespace

void SnapshotBuilder::Impl::AddReloads(const AgentStatus& agent) {
  if (!std::isnan(agent.config.good_wall_seconds)) {
    Add(MetricNamed("rankscope_config_last_reload_successful"), nullptr, agent.config.good ? 1 : 0);
    Add(MetricNamed("rankscope_config_last_reload_success_timestamp_seconds"), nullptr,
        agent.config.good_wall_seconds);
  }
  if (!std::isnan(agent.web_config.good_wall_seconds)) {
    Add(MetricNamed("rankscope_web_config_last_reload_successful"), nullptr,
        agent.web_config.good ? 1 : 0);
    Add(MetricNamed("rankscope_web_config_last_reload_success_timestamp_seconds"), nullptr,
        agent.web_config.good_wall_seconds);
  }
}

void SnapshotBuilder::Impl::AddNotifications(const NotifyStatus& notify) {
  for (size_t i = 0; i < kNotifyKinds.size(); ++i) {
    const LabelPointer& kind = agent_labels.Get("channel_kind", {kNotifyKinds[i]});
    Add(MetricNamed("rankscope_notifications_failed_total"), kind, Count(notify.failed[i]));
    Add(MetricNamed("rankscope_notifications_pending"), kind, Count(notify.pending[i]));
    Add(MetricNamed("rankscope_notifications_sent_total"), kind, Count(notify.sent[i]));
  }
  for (size_t i = 0; i < kNotifyLosses.size(); ++i)
    Add(MetricNamed("rankscope_notifications_dropped_total"),
        agent_labels.Get("reason", {kNotifyLosses[i]}), Count(notify.dropped[i]));
}

void SnapshotBuilder::Impl::AddAgent(const AgentStatus& agent, double wall_seconds) {
  own_node = agent.node;
  for (size_t i = 0; i < agent.http.responses.size(); ++i) {
    Add(MetricNamed("rankscope_http_responses_total"),
        agent_labels.Get("status", {kStatusClasses[i]}), Count(agent.http.responses[i]));
  }
  Add(MetricNamed("rankscope_http_evicted_total"), nullptr, Count(agent.http.evicted));
  for (size_t i = 0; i < agent.http.scrapes.size(); ++i) {
    Add(MetricNamed("rankscope_http_scrapes_total"), agent_labels.Get("format", {kFormatNames[i]}),
        Count(agent.http.scrapes[i]));
  }
  Add(MetricNamed("rankscope_http_handshakes_failed_total"), nullptr,
      Count(agent.http.handshakes_failed));
  Add(MetricNamed("rankscope_http_unauthenticated_total"), nullptr,
      Count(agent.http.unauthenticated));
  AddReloads(agent);
  if (agent.notify) AddNotifications(*agent.notify);
  Add(MetricNamed("rankscope_disk_behind_seconds"), nullptr, agent.disk_behind_seconds);
  Add(MetricNamed("rankscope_documents_damaged_total"), nullptr, Count(agent.documents_damaged));
  Add(MetricNamed("rankscope_documents_waiting"), nullptr, Count(agent.documents_waiting));
  Add(MetricNamed("rankscope_jobs_dropped_total"), nullptr, Count(agent.engine.jobs_dropped));
  Add(MetricNamed("rankscope_jobs_limit"), nullptr, Count(agent.max_jobs));
  Add(MetricNamed("rankscope_last_tick_timestamp_seconds"), nullptr, wall_seconds);
  if (agent.memory_limit_bytes > 0) {
    Add(MetricNamed("rankscope_memory_limit_bytes"), nullptr, Count(agent.memory_limit_bytes));
    Add(MetricNamed("rankscope_memory_used_bytes"), nullptr, Count(agent.memory_used_bytes));
  }
  Add(MetricNamed("rankscope_log_unattributed_lines_total"), nullptr,
      Count(agent.engine.unattributed_lines));
  Add(MetricNamed("rankscope_observations_malformed_total"), nullptr,
      Count(agent.engine.malformed));
  Add(MetricNamed("rankscope_observations_total"), nullptr, Count(agent.engine.observations));
  Add(MetricNamed("rankscope_recorder_bytes_total"), nullptr, Count(agent.recorder_bytes));
  Add(MetricNamed("rankscope_recorder_lost_total"), nullptr, Count(agent.recorder_lost));
  Add(MetricNamed("rankscope_recorder_write_errors_total"), nullptr,
      Count(agent.recorder_write_errors));
  Add(MetricNamed("rankscope_tick_seconds"), nullptr, agent.tick_seconds);
  std::vector<const SourceStatus*> sources;  // each name once: a series twice would fail the scrape
  for (const SourceStatus& source : agent.sources) {
    const bool twice = std::any_of(sources.begin(), sources.end(),
                                   [&](const SourceStatus* s) { return s->name == source.name; });
    if (!twice) sources.push_back(&source);
  }
  for (const SourceStatus* source : sources) {
    const LabelPointer& labels = agent_labels.Get("source", {source->name});
    Add(MetricNamed("rankscope_source_up"), labels, Flag(source->state == Availability::kUp));
    Add(MetricNamed("rankscope_source_lost_total"), labels, Count(source->lost));
    Add(MetricNamed("rankscope_source_observations_total"), labels, Count(source->observations));
    Add(MetricNamed("rankscope_source_last_event_timestamp_seconds"), labels,
        source->last_event_wall_seconds);
    if (source->name == "stdio") AddOutput(*source);
    if (source->name == "kmsg") AddKernelLines(*source);
    if (source->name == "run") AddRefusals(*source);
    for (const ProbeStatus& probe : source->probes) AddProbe(source->name, probe);
  }
}

void SnapshotBuilder::Impl::AddProbe(const std::string& source, const ProbeStatus& probe) {
  const LabelPointer& labels = agent_labels.Get("source,probe", {source, probe.probe});
  Add(MetricNamed("rankscope_probe_duty_ratio"), labels, probe.duty_ratio);
  Add(MetricNamed("rankscope_probe_runs_total"), labels, Count(probe.runs));
  Add(MetricNamed("rankscope_probe_seconds_total"), labels, probe.seconds);
  for (const std::string& site : probe.sites) {
    Add(MetricNamed("rankscope_probe_placement_info"),
        agent_labels.Get("source,probe,class", {source, probe.probe, site}), 1);
  }
}

void SnapshotBuilder::Impl::AddJobInfo(const JobStatus& job) {
  constexpr MetricId kInfo = MetricNamed("rankscope_job_info");
  if (!Room(kInfo)) return;
  const attribution::JobFacts& facts = job.facts;
  Put(kInfo,
      jobs[job.job_id].labels.Get(
          kCatalog[kInfo].labels,
          {job.job_id, job.user, job.command, std::to_string(job.attempt.ordinal), facts.name,
           facts.account, facts.partition, facts.qos, facts.array_job_id, facts.array_task,
           facts.het_job_id, facts.nodes, facts.tasks, std::to_string(job.attempt.slurm_restart),
           facts.dependency, facts.launcher}),
      1);
}

void SnapshotBuilder::Impl::AddJob(const JobStatus& job) {
  JobMemory& memory = jobs[job.job_id];
  LabelCache& cache = memory.labels;
  const LabelPointer& labels = cache.Get("job_id", {job.job_id});
  Add(MetricNamed("rankscope_job_running"), labels, Flag(job.running));
  Add(MetricNamed("rankscope_job_suspended"), labels, job.suspension.now);
  Add(MetricNamed("rankscope_job_suspended_seconds_total"), labels, job.suspension.total_seconds);
  if (job.world_size > 0) Add(MetricNamed("rankscope_job_world_size"), labels, job.world_size);

  constexpr MetricId kEvidence = MetricNamed("rankscope_evidence_available");
  if (Room(kEvidence, kStores.size())) {
    for (const proto::Store store : kStores) {
      Put(kEvidence, cache.Get("job_id,store", {job.job_id, Word(store)}),
          Flag(StoreSpoke(job, store)));
    }
  }
  AddPorts(job);
  AddJobGpus(job);
  for (auto& [kind, stands] : memory.warnings) stands = false;
  for (const proto::Warning& warning : job.verdict.warnings()) {
    const auto known = memory.warnings.find(warning.kind());
    if (known != memory.warnings.end()) {
      known->second = true;
    } else if (memory.warnings.size() < kMaxWarningsPerJob) {
      memory.warnings.emplace(warning.kind(), true);
    }
  }
  for (const auto& [kind, stands] : memory.warnings) {
    Add(MetricNamed("rankscope_warning_active"), cache.Get("job_id,warning", {job.job_id, kind}),
        Flag(stands));
  }
}

void SnapshotBuilder::Impl::AddPorts(const JobStatus& job) {
  if (std::isnan(job.rdma.sent_bytes)) return;  // no device
  LabelCache& cache = jobs[job.job_id].labels;
  const LabelPointer& labels = cache.Get("job_id", {job.job_id});
  Add(MetricNamed("rankscope_infiniband_received_bytes_total"), labels, job.rdma.received_bytes);
  Add(MetricNamed("rankscope_infiniband_sent_bytes_total"), labels, job.rdma.sent_bytes);
  Add(MetricNamed("rankscope_infiniband_ports_down"), labels, job.rdma.ports_down);
  for (size_t i = 0; i < kPortCounterKinds.size(); ++i) {
    if (job.rdma.errors[i] < 0) continue;
    Add(MetricNamed("rankscope_infiniband_errors_total"),
        cache.Get("job_id,kind", {job.job_id, kPortCounterKinds[i].name}), job.rdma.errors[i]);
  }
}

void SnapshotBuilder::Impl::AddTraining(const JobStatus& job) {
  LabelCache& cache = jobs[job.job_id].labels;
  const TrainingStatus& training = job.training;
  const LabelPointer& labels = cache.Get("job_id", {job.job_id});
  Add(MetricNamed("rankscope_training_progress_recognised"), labels, Flag(training.recognised));
  if (!training.framework.empty()) {
    Add(MetricNamed("rankscope_training_framework_info"),
        cache.Get("job_id,framework", {job.job_id, training.framework}), 1);
  }
  for (const SignalRow& row : kSignals) {
    if (row.scope != SignalScope::Job || !IsShown(row)) continue;
    const MetricId metric = MetricOf(row);
    const double value = job.signals[row.id];
    // Absent and "the job printed nan" are both NaN here; the count of such records tells them
    // apart.
    const bool printed = row.id == SignalId::kLoss && training.nonfinite_loss > 0;
    if (!std::isnan(value)) {
      Add(metric,
          row.label().empty() ? labels
                              : cache.Get(kCatalog[metric].labels, {job.job_id, row.label_value()}),
          value);
    } else if (printed && Room(metric)) {
      Put(metric, labels, value);
    }
  }
  Add(MetricNamed("rankscope_training_nonfinite_total"),
      cache.Get("job_id,field", {job.job_id, "loss"}), Count(training.nonfinite_loss));
  AddCheckpoints(job.checkpoints, labels);
}

void SnapshotBuilder::Impl::AddCheckpoints(const CheckpointStatus& checkpoints,
                                           const LabelPointer& labels) {
  Add(MetricNamed("rankscope_checkpoint_saves_total"), labels, Count(checkpoints.saves));
  if (checkpoints.files_seen)
    Add(MetricNamed("rankscope_checkpoint_whole"), labels, Flag(checkpoints.newest_whole));
  Add(MetricNamed("rankscope_checkpoint_last_timestamp_seconds"), labels,
      checkpoints.last_wall_seconds);
  Add(MetricNamed("rankscope_checkpoint_last_save_seconds"), labels, checkpoints.last_seconds);
  Add(MetricNamed("rankscope_checkpoint_last_bytes"), labels, checkpoints.last_bytes);
  Add(MetricNamed("rankscope_checkpoint_interval_seconds"), labels, checkpoints.interval_seconds);
  Add(MetricNamed("rankscope_checkpoint_free_bytes"), labels, checkpoints.free_bytes);
  Add(MetricNamed("rankscope_checkpoint_full_in_seconds"), labels, checkpoints.full_in_seconds);
  Add(MetricNamed("rankscope_checkpoint_work_at_risk_seconds"), labels,
      checkpoints.work_at_risk_seconds);
}

// Names of hooks begin so; the others count bytes.
constexpr std::string_view kHook = "hook_";

void SnapshotBuilder::Impl::AddOutput(const SourceStatus& stdio) {
  for (const auto& [name, value] : stdio.counts) {
    if (name.starts_with(kHook)) {
      Add(MetricNamed("rankscope_output_hook"),
          agent_labels.Get("kind", {name.substr(kHook.size())}), Count(value));
    } else {
      Add(MetricNamed("rankscope_output_bytes_total"), agent_labels.Get("kind", {name}),
          Count(value));
    }
  }
}

void SnapshotBuilder::Impl::AddKernelLines(const SourceStatus& kmsg) {
  for (const auto& [name, value] : kmsg.counts) {
    Add(MetricNamed("rankscope_kernel_events_total"), agent_labels.Get("kind", {name}),
        Count(value));
  }
}

void SnapshotBuilder::Impl::AddRefusals(const SourceStatus& run) {
  for (const auto& [name, value] : run.counts) {
    Add(MetricNamed("rankscope_run_refusals_total"), agent_labels.Get("kind", {name}),
        Count(value));
  }
}

void SnapshotBuilder::Impl::AddLogs(const JobStatus& job) {
  LabelCache& cache = jobs[job.job_id].labels;
  std::map<std::string_view, LogStatus> streams;
  for (const LogStatus& log : job.logs) {
    std::string_view name = StreamName(log.stream);
    if (!streams.contains(name) && streams.size() >= kMaxStreamsPerJob) name = "other";
    LogStatus& sum = streams[name];
    sum.lines += log.lines;
    sum.bytes += log.bytes;
    sum.lost_bytes += log.lost_bytes;
    sum.redactions += log.redactions;
  }
  for (const auto& [name, log] : streams) {
    const LabelPointer& labels = cache.Get("job_id,stream", {job.job_id, name});
    Add(MetricNamed("rankscope_log_lines_total"), labels, Count(log.lines));
    Add(MetricNamed("rankscope_log_bytes_total"), labels, Count(log.bytes));
    Add(MetricNamed("rankscope_log_dropped_bytes_total"), labels, Count(log.lost_bytes));
    Add(MetricNamed("rankscope_log_redactions_total"), labels, Count(log.redactions));
  }
}

}  // namespace rankscope::metrics
