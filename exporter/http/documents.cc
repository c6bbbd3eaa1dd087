// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/documents.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "exporter/metrics/shown_jobs.h"

namespace rankscope::http {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order of writing

// The verdict's own document, so that its parts read the same everywhere. Never throws: what cannot
// be parsed is null.
Json VerdictDocument(const JobStatus& job) {
  return Json::parse(VerdictToJson(job.verdict), nullptr, false);
}

Json Part(const Json& verdict, const char* key) {
  const auto part = verdict.find(key);
  return part == verdict.end() ? Json() : *part;
}

// What says which verdict this belongs to.
Json Head(const JobStatus& job, const Json& verdict) {
  Json out;
  out["schema"] = 1;
  out["job_id"] = job.job_id;
  for (const char* key : {"attempt", "state", "revision", "code", "family", "confidence"}) {
    out[key] = Part(verdict, key);
  }
  out["running"] = job.running;
  return out;
}

Json Stores(const JobStatus& job) {
  Json out = Json::array();
  for (const proto::Store store : metrics::kStores) {
    out.push_back(
        {{"store", std::string(Word(store))}, {"available", metrics::StoreSpoke(job, store)}});
  }
  return out;
}

Json Training(const JobStatus& job) {
  const TrainingStatus& training = job.training;
  Json out;
  out["recognised"] = training.recognised;
  out["framework"] = training.framework.empty() ? Json() : Json(training.framework);
  for (const SignalRow& row : kSignals) {
    if (row.scope == SignalScope::Job && row.origin == SignalOrigin::Derived)
      out[std::string(row.name)] = job.signals[row.id];
  }
  // Not finite: null, and told here.
  out["loss_finite"] = training.nonfinite_loss == 0 || std::isfinite(job.signals[SignalId::kLoss]);
  out["records"] = training.records;
  out["nonfinite_loss_records"] = training.nonfinite_loss;
  return out;
}

Json Checkpoints(const CheckpointStatus& checkpoints) {
  Json out;
  out["saves"] = checkpoints.saves;
  out["files_seen"] = checkpoints.files_seen;
  out["newest_whole"] = checkpoints.files_seen ? Json(checkpoints.newest_whole) : Json();
  out["last_timestamp_seconds"] = checkpoints.last_wall_seconds;
  out["last_save_seconds"] = checkpoints.last_seconds;
  out["last_bytes"] = checkpoints.last_bytes;
  out["interval_seconds"] = checkpoints.interval_seconds;
  out["free_bytes"] = checkpoints.free_bytes;
  out["full_in_seconds"] = checkpoints.full_in_seconds;
  out["work_at_risk_seconds"] = checkpoints.work_at_risk_seconds;
  return out;
}

Json Rdma(const RdmaStatus& rdma) {
  Json out;
  out["received_bytes"] = rdma.received_bytes;
  out["sent_bytes"] = rdma.sent_bytes;
  out["ports_down"] = rdma.ports_down;
  out["errors"] = Json::object();
  for (size_t i = 0; i < kPortCounterKinds.size(); ++i) {
    if (rdma.errors[i] >= 0) out["errors"][std::string(kPortCounterKinds[i].name)] = rdma.errors[i];
  }
  return out;
}

// What the process calls of CUDA and NCCL, and what its threads wait for.
bool IsCall(const SignalRow& row) {
  const bool calls = row.id == SignalId::kKernelLaunches ||
                     row.id == SignalId::kCollectivesEnqueued ||
                     (row.id >= SignalId::kGraphLaunches && row.id <= SignalId::kInitsInFlight);
  const bool waits = row.id >= SignalId::kRunningSeconds && row.id <= SignalId::kLaunchGapSeconds;
  return row.scope == SignalScope::Rank && row.origin == SignalOrigin::Sampled && (calls || waits);
}

Json Ranks(const JobStatus& job) {
  Json out = Json::array();
  for (const RankStatus& rank : job.ranks) {
    Json one;
    one["rank"] = rank.rank;
    one["local_rank"] = rank.local_rank;
    one["pid"] = rank.process.pid;
    one["alive"] = rank.alive;
    one["wait_status"] = rank.exit_known ? Json(rank.wait_status) : Json();
    one["cpu_seconds"] = rank.signals[SignalId::kCpuSeconds];
    one["resident_bytes"] = rank.signals[SignalId::kResidentBytes];
    one["threads"] = rank.signals[SignalId::kThreads];
    one["engine_activity"] = rank.signals[SignalId::kRankEngineActivity];
    one["sm_activity"] = rank.signals[SignalId::kRankSmActivity];
    one["collectives_completed"] = rank.signals[SignalId::kCollectivesCompleted];
    one["collectives_in_flight"] = rank.signals[SignalId::kCollectivesInFlight];
    one["oldest_collective_seconds"] = rank.signals[SignalId::kOldestCollectiveSeconds];
    for (const SignalRow& row : kSignals) {
      if (IsCall(row) && !std::isnan(rank.signals[row.id]))
        one["calls"][std::string(row.name)] = rank.signals[row.id];
    }
    out.push_back(std::move(one));
  }
  return out;
}

Json Logs(const JobStatus& job) {
  Json out = Json::array();
  for (const LogStatus& log : job.logs) {
    out.push_back({{"stream", log.stream},
                   {"lines", log.lines},
                   {"bytes", log.bytes},
                   {"lost_bytes", log.lost_bytes},
                   {"redactions", log.redactions}});
  }
  return out;
}

// The cause chain with its evidence in place of the evidence's number.
Json Causes(const Json& verdict) {
  Json out = Json::array();
  const Json shows = Part(verdict, "shows");
  for (const Json& cause : Part(verdict, "cause_chain")) {
    Json one;
    one["role"] = Part(cause, "role");
    const Json id = Part(cause, "evidence");
    one["evidence"] = id;
    for (const Json& evidence : shows) {
      if (Part(evidence, "id") == id) one["shows"] = evidence;
    }
    out.push_back(std::move(one));
  }
  return out;
}

Json Lifecycle(const JobTimeline& timeline) {
  Json out = Json::array();
  for (const JobMark& mark : timeline.marks) {
    if (!std::isfinite(mark.wall_seconds)) continue;
    const int64_t wall_ns = std::llround(mark.wall_seconds * 1e3) * 1'000'000;
    out.push_back({{"time", Rfc3339(wall_ns)}, {"kind", mark.kind}, {"text", mark.text}});
  }
  return out;
}

// Text from the world that is not UTF-8 is told with U+FFFD.
std::string Print(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string EvidenceJson(const JobStatus& job) {
  const Json verdict = VerdictDocument(job);
  Json out = Head(job, verdict);
  out["shows"] = Part(verdict, "shows");
  out["stores"] = Stores(job);
  out["training"] = Training(job);
  out["checkpoints"] = Checkpoints(job.checkpoints);
  out["rdma"] = Rdma(job.rdma);
  out["world_size"] = job.world_size > 0 ? Json(job.world_size) : Json();
  out["ranks"] = Ranks(job);
  out["logs"] = Logs(job);
  return Print(out);
}

std::string EventsJson(const JobStatus& job) {
  const Json verdict = VerdictDocument(job);
  Json out = Head(job, verdict);
  for (const char* key : {"onset", "detected", "updated", "amended_by"}) {
    out[key] = Part(verdict, key);
  }
  out["changes"] = job.verdict_changes;
  out["incidents"] = job.incidents;
  out["attempts"] = Part(verdict, "attempts");
  out["lifecycle"] = Lifecycle(job.timeline);
  out["cause_chain"] = Causes(verdict);
  return Print(out);
}

std::string EventsJson(const JobStatus* job, const SlurmReport& report,
                       const exporter::slurm::EventQuery& query) {
  std::string events = exporter::slurm::EventsToJson(report, query);
  if (job == nullptr) return events;
  Json out = Json::parse(EventsJson(*job), nullptr, false);
  out.update(Json::parse(events, nullptr, false));
  return Print(out);
}

std::string SummaryJson(const JobSummary& summary, std::string_view line) {
  Json out;
  out["schema"] = 1;
  out["job_id"] = summary.job_id;
  out["array_task"] = summary.array_task.empty() ? Json() : Json(summary.array_task);
  out["end_timestamp_seconds"] =
      summary.end_wall_seconds > 0 ? Json(summary.end_wall_seconds) : Json();
  out["restarts"] = summary.restarts;
  out["code"] = summary.code;
  out["node"] = summary.node;
  out["program"] = summary.program.empty() ? Json() : Json(summary.program);
  out["records"] = summary.records;
  out["first_step"] = summary.first_step;
  out["last_step"] = summary.last_step;
  out["total_steps"] = summary.total_steps;
  out["first_loss"] = summary.first_loss;
  out["last_loss"] = summary.last_loss;
  out["loss_mad"] = summary.loss_mad;
  out["finished"] = summary.finished;
  out["saves"] = summary.saves;
  out["checkpoints"] = Json::array();
  for (const JobSummary::Checkpoint& checkpoint : summary.checkpoints) {
    out["checkpoints"].push_back(
        {{"path", checkpoint.path}, {"bytes", checkpoint.bytes}, {"step", checkpoint.step}});
  }
  out["line"] = std::string(line);
  return Print(out);
}

}  // namespace rankscope::http
