// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/documents.h"

#include <cmath>

#include "detectors/document/json_writer.h"
#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_parts.h"
#include "detectors/document/verdict_words.h"
#include "exporter/metrics/shown_jobs.h"

namespace rankscope::http {
namespace {

// What says which verdict this belongs to.
void WriteHead(const JobStatus& job, JsonWriter& w) {
  w.Integer("schema", 1);
  w.Text("job_id", job.job_id);
  WriteReference(job.verdict, w);
  w.Bool("running", job.running);
}

void WriteStores(const JobStatus& job, JsonWriter& w) {
  w.Key("stores");
  w.Open('[');
  for (const proto::Store store : metrics::kStores) {
    w.Open('{');
    w.Text("store", Word(store));
    w.Bool("available", metrics::StoreSpoke(job, store));
    w.Close('}');
  }
  w.Close(']');
}

void WriteTraining(const JobStatus& job, JsonWriter& w) {
  const TrainingStatus& training = job.training;
  w.Key("training");
  w.Open('{');
  w.Bool("recognised", training.recognised);
  w.TextOrNull("framework", training.framework);
  for (const SignalRow& row : kSignals) {
    if (row.scope == SignalScope::Job && row.origin == SignalOrigin::Derived)
      w.RealOrNull(row.name, job.signals[row.id]);
  }
  // Not finite: null, and told here.
  w.Bool("loss_finite",
         training.nonfinite_loss == 0 || std::isfinite(job.signals[SignalId::kLoss]));
  w.Integer("records", training.records);
  w.Integer("nonfinite_loss_records", training.nonfinite_loss);
  w.Close('}');
}

void WriteCheckpoints(const CheckpointStatus& checkpoints, JsonWriter& w) {
  w.Key("checkpoints");
  w.Open('{');
  w.Integer("saves", checkpoints.saves);
  w.Bool("files_seen", checkpoints.files_seen);
  if (checkpoints.files_seen) {
    w.Bool("newest_whole", checkpoints.newest_whole);
  } else {
    w.Null("newest_whole");
  }
  w.RealOrNull("last_timestamp_seconds", checkpoints.last_wall_seconds);
  w.RealOrNull("last_save_seconds", checkpoints.last_seconds);
  w.RealOrNull("last_bytes", checkpoints.last_bytes);
  w.RealOrNull("interval_seconds", checkpoints.interval_seconds);
  w.RealOrNull("free_bytes", checkpoints.free_bytes);
  w.RealOrNull("full_in_seconds", checkpoints.full_in_seconds);
  w.RealOrNull("work_at_risk_seconds", checkpoints.work_at_risk_seconds);
  w.Close('}');
}

void WriteRdma(const RdmaStatus& rdma, JsonWriter& w) {
  w.Key("rdma");
  w.Open('{');
  w.RealOrNull("received_bytes", rdma.received_bytes);
  w.RealOrNull("sent_bytes", rdma.sent_bytes);
  w.RealOrNull("ports_down", rdma.ports_down);
  w.Key("errors");
  w.Open('{');
  for (size_t i = 0; i < kPortCounterKinds.size(); ++i) {
    if (rdma.errors[i] >= 0) w.RealOrNull(kPortCounterKinds[i].name, rdma.errors[i]);
  }
  w.Close('}');
  w.Close('}');
}

// What the process calls of CUDA and NCCL, and what its threads wait for.
bool IsCall(const SignalRow& row) {
  const bool calls = row.id == SignalId::kKernelLaunches ||
                     row.id == SignalId::kCollectivesEnqueued ||
                     (row.id >= SignalId::kGraphLaunches && row.id <= SignalId::kInitsInFlight);
  const bool waits = row.id >= SignalId::kRunningSeconds && row.id <= SignalId::kLaunchGapSeconds;
  return row.scope == SignalScope::Rank && row.origin == SignalOrigin::Sampled && (calls || waits);
}

void WriteCalls(const RankSignals& signals, JsonWriter& w) {
  bool any = false;
  for (const SignalRow& row : kSignals) {
    if (!IsCall(row) || std::isnan(signals[row.id])) continue;
    if (!any) {
      w.Key("calls");
      w.Open('{');
      any = true;
    }
    w.RealOrNull(row.name, signals[row.id]);
  }
  if (any) w.Close('}');
}

void WriteRank(const RankStatus& rank, JsonWriter& w) {
  w.Open('{');
  w.Integer("rank", rank.rank);
  w.Integer("local_rank", rank.local_rank);
  w.Integer("pid", rank.process.pid);
  w.Bool("alive", rank.alive);
  w.IntegerOrNull("wait_status", rank.exit_known, rank.wait_status);
  w.RealOrNull("cpu_seconds", rank.signals[SignalId::kCpuSeconds]);
  w.RealOrNull("resident_bytes", rank.signals[SignalId::kResidentBytes]);
  w.RealOrNull("threads", rank.signals[SignalId::kThreads]);
  w.RealOrNull("engine_activity", rank.signals[SignalId::kRankEngineActivity]);
  w.RealOrNull("sm_activity", rank.signals[SignalId::kRankSmActivity]);
  w.RealOrNull("collectives_completed", rank.signals[SignalId::kCollectivesCompleted]);
  w.RealOrNull("collectives_in_flight", rank.signals[SignalId::kCollectivesInFlight]);
  w.RealOrNull("oldest_collective_seconds", rank.signals[SignalId::kOldestCollectiveSeconds]);
  WriteCalls(rank.signals, w);
  w.Close('}');
}

void WriteLogs(const JobStatus& job, JsonWriter& w) {
  w.Key("logs");
  w.Open('[');
  for (const LogStatus& log : job.logs) {
    w.Open('{');
    w.Text("stream", log.stream);
    w.Integer("lines", log.lines);
    w.Integer("bytes", log.bytes);
    w.Integer("lost_bytes", log.lost_bytes);
    w.Integer("redactions", log.redactions);
    w.Close('}');
  }
  w.Close(']');
}

void WriteLifecycle(const JobTimeline& timeline, JsonWriter& w) {
  w.Key("lifecycle");
  w.Open('[');
  for (const JobMark& mark : timeline.marks) {
    if (!std::isfinite(mark.wall_seconds)) continue;
    const int64_t wall_ns = std::llround(mark.wall_seconds * 1e3) * 1'000'000;
    w.Open('{');
    w.Text("time", Rfc3339(wall_ns));
    w.Text("kind", mark.kind);
    w.Text("text", mark.text);
    w.Close('}');
  }
  w.Close(']');
}

void WriteJobEvents(const JobStatus& job, JsonWriter& w) {
  const proto::Verdict& verdict = job.verdict;
  WriteHead(job, w);
  w.Time("onset", verdict.onset_ns());
  w.Time("detected", verdict.detected_ns());
  w.Time("updated", verdict.updated_ns());
  w.TextOrNull("amended_by", verdict.amended_by());
  w.Integer("changes", job.verdict_changes);
  w.Integer("incidents", job.incidents);
  WriteAttempts(verdict, w);
  WriteLifecycle(job.timeline, w);
  WriteShownCauses(verdict, w);
}

}  // namespace

std::string EvidenceJson(const JobStatus& job) {
  JsonWriter w;
  w.Open('{');
  WriteHead(job, w);
  WriteShows(job.verdict, w);
  WriteStores(job, w);
  WriteTraining(job, w);
  WriteCheckpoints(job.checkpoints, w);
  WriteRdma(job.rdma, w);
  w.IntegerOrNull("world_size", job.world_size > 0, job.world_size);
  w.Key("ranks");
  w.Open('[');
  for (const RankStatus& rank : job.ranks) WriteRank(rank, w);
  w.Close(']');
  WriteLogs(job, w);
  w.Close('}');
  return w.Take();
}

std::string EventsJson(const JobStatus& job) {
  JsonWriter w;
  w.Open('{');
  WriteJobEvents(job, w);
  w.Close('}');
  return w.Take();
}

std::string EventsJson(const JobStatus* job, const SlurmReport& report,
                       const exporter::slurm::EventQuery& query) {
  if (job == nullptr) return exporter::slurm::EventsToJson(report, query);
  JsonWriter w;
  w.Open('{');
  WriteJobEvents(*job, w);
  exporter::slurm::WriteEvents(report, query, w);
  w.Close('}');
  return w.Take();
}

std::string SummaryJson(const JobSummary& summary, std::string_view line) {
  JsonWriter w;
  w.Open('{');
  w.Integer("schema", 1);
  w.Text("job_id", summary.job_id);
  w.TextOrNull("array_task", summary.array_task);
  w.IntegerOrNull("end_timestamp_seconds", summary.end_wall_seconds > 0, summary.end_wall_seconds);
  w.Integer("restarts", summary.restarts);
  w.Text("code", summary.code);
  w.Text("node", summary.node);
  w.TextOrNull("program", summary.program);
  w.Integer("records", summary.records);
  w.RealOrNull("first_step", summary.first_step);
  w.RealOrNull("last_step", summary.last_step);
  w.RealOrNull("total_steps", summary.total_steps);
  w.RealOrNull("first_loss", summary.first_loss);
  w.RealOrNull("last_loss", summary.last_loss);
  w.RealOrNull("loss_mad", summary.loss_mad);
  w.Bool("finished", summary.finished);
  w.Integer("saves", summary.saves);
  w.Key("checkpoints");
  w.Open('[');
  for (const JobSummary::Checkpoint& checkpoint : summary.checkpoints) {
    w.Open('{');
    w.Text("path", checkpoint.path);
    w.RealOrNull("bytes", checkpoint.bytes);
    w.RealOrNull("step", checkpoint.step);
    w.Close('}');
  }
  w.Close(']');
  w.Text("line", line);
  w.Close('}');
  return w.Take();
}

}  // namespace rankscope::http
