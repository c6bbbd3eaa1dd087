// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/status/describe_job.h"

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "detectors/attribution/attribution.h"
#include "detectors/status/describe_gpus.h"
#include "detectors/status/describe_timeline.h"
#include "detectors/windows/checkpoint_summary.h"
#include "detectors/windows/derived_signals.h"
#include "detectors/windows/ended_well.h"
#include "detectors/windows/job_window.h"

namespace rankscope::status {
namespace {

void DescribeTraining(const windows::AttemptWindow& window, TrainingStatus& training) {
  training.recognised = window.progress > 0 && !window.generic;
  training.framework = !window.framework.empty() ? window.framework : window.format;
  training.records = window.progress;
  training.nonfinite_loss = window.loss.nonfinite();
}

// A CUDA library alone proves nothing: a build of PyTorch for GPUs maps one where there is no card.
// Nor does an open device: who only watches the card has that, too.
void DescribeAttached(const windows::SampleRings& rings, const attribution::ProcessInfo& process,
                      RankStatus& rank) {
  if (!rings.Has(SignalId::kCudaUse) || rings.LastTime(SignalId::kCudaUse) < process.started)
    return;  // of an earlier process of the rank
  const double use = rings.Last(SignalId::kCudaUse);
  const bool holds = rings.Last(SignalId::kGpuDevicesOpen) > 0;
  rank.cuda_attached = process.alive && (use >= 2 || (use >= 1 && holds)) ? 1 : 0;
}

void DescribeCheckpoints(const windows::JobWindow& job, int64_t wall_offset_ns, Timestamp now,
                         CheckpointStatus& status) {
  const windows::CheckpointSummary summary = windows::SummarizeCheckpoints(job, now);
  status.saves = summary.saves;
  status.files_seen = summary.files;
  status.newest_whole = summary.newest_whole;
  if (summary.saved && wall_offset_ns != 0)
    status.last_wall_seconds = static_cast<double>(summary.end.ns + wall_offset_ns) * 1e-9;
  status.last_seconds = summary.seconds;
  status.last_bytes = summary.bytes;
  status.interval_seconds = summary.interval_seconds;
  status.free_bytes = summary.free_bytes;
  status.full_in_seconds = summary.full_in_seconds;
  status.work_at_risk_seconds = summary.work_at_risk_seconds;
}

void DescribeClaims(const std::vector<windows::ClaimedGpu>& claimed,
                    std::vector<JobGpuStatus>& gpus) {
  for (const windows::ClaimedGpu& card : claimed) {
    const std::string_view word = attribution::NameOf(card.word);
    gpus.push_back({card.gpu->index, card.gpu->uuid, word.empty() ? "process" : word, card.attached,
                    card.ranks});
  }
}

RankPlace PlaceOf(const attribution::ProcessInfo& process) {
  return {process.step_id,      process.node_rank, process.world_size, process.node_name,
          process.container_id, process.pod_uid,   process.master_addr};
}

void DescribePorts(const windows::PortTracker& ports, RdmaStatus& status) {
  status.errors.fill(-1);
  if (!ports.any()) return;
  status.received_bytes = ports.received_bytes();
  status.sent_bytes = ports.sent_bytes();
  status.ports_down = ports.ports_down();
  for (size_t i = 0; i < status.errors.size(); ++i) status.errors[i] = ports.Rose(i);
}

void DescribeRanks(const windows::SignalView& view, const attribution::Attribution& processes,
                   std::vector<RankStatus>& ranks) {
  for (const auto& [number, window] : view.job.ranks()) {
    RankStatus& rank = ranks.emplace_back();
    rank.rank = number;
    rank.local_rank = window.local_rank;
    rank.process = window.process;
    if (const attribution::ProcessInfo* process = processes.Find(window.process)) {
      rank.alive = process->alive;
      rank.exit_known = process->status_known;
      rank.wait_status = process->wait_status;
      rank.place = PlaceOf(*process);
      DescribeAttached(window.rings, *process, rank);
    }
    rank.signals = windows::SignalsOf(view, window);
    rank.launch_gaps_counted = window.launch_gaps_counted;
    rank.launch_gaps = window.launch_gaps;
  }
}

// Whose the job is: the scheduler's word, else that of its first process.
void DescribeOwner(const windows::JobWindow& job, const attribution::Attribution& processes,
                   const attribution::ProcessInfo* root, JobStatus& status) {
  if (root != nullptr) status.user = std::to_string(root->uid);
  const attribution::JobFacts* facts = processes.FindJob(job.job_id());
  if (facts != nullptr) status.facts = *facts;
  if (!status.facts.user.empty()) status.user = status.facts.user;
}

// Nothing carries a rank: the command is rank 0 of 1, as far as anybody can tell.
RankStatus OnlyRank(const attribution::ProcessInfo& root) {
  RankStatus rank;
  rank.rank = 0;
  rank.local_rank = 0;
  rank.process = root.key;
  rank.alive = root.alive;
  rank.exit_known = root.status_known;
  rank.wait_status = root.wait_status;
  return rank;
}

const attribution::ProcessInfo* FirstProcess(const windows::JobWindow& job,
                                             const attribution::Attribution& processes) {
  if (const attribution::ProcessInfo* root = processes.Find(job.root())) return root;
  const auto members = processes.OfJob(job.job_id());
  return members.empty() ? nullptr : members.front();
}

void DescribeWindow(const engine::JobView& view, JobStatus& status) {
  const windows::JobWindow& job = *view.window;
  const attribution::Attribution& processes = *view.processes;
  status.command = job.command();
  status.world_size = job.world_size();
  status.attempt = job.attempt();
  status.incidents = job.incidents().total() - windows::CountEndedWell(job.incidents());
  DescribeTraining(job.now(), status.training);
  DescribeCheckpoints(job, view.wall_offset_ns, view.judged, status.checkpoints);
  DescribePorts(job.now().kernel.rdma, status.rdma);
  if (const windows::SuspensionTracker& suspension = job.suspension(); suspension.known()) {
    status.suspension.now = suspension.Suspended(view.judged) ? 1 : 0;
    status.suspension.total_seconds = suspension.Total(view.judged).seconds();
  }
  const std::vector<windows::ClaimedGpu> claimed = job.gpu_claims().Of(job.now().kernel.gpus);
  const windows::SignalView signals{job, claimed, view.wall_offset_ns, view.judged};
  status.signals = windows::SignalsOf(signals);
  DescribeRanks(signals, processes, status.ranks);
  status.gpu_history = DescribeGpus(job.now().kernel.gpus, view.wall_offset_ns);
  DescribeClaims(claimed, status.gpus);
  const attribution::ProcessInfo* root = FirstProcess(job, processes);
  DescribeOwner(job, processes, root, status);
  if (status.ranks.empty() && job.wrapped() && root != nullptr) {
    status.ranks.push_back(OnlyRank(*root));
    status.ranks.back().signals = windows::SignalsWithoutRank(signals);
  }
  for (const auto& [id, stream] : job.streams()) {
    status.logs.push_back(
        {stream.name, stream.lines, stream.bytes, stream.lost_bytes, stream.redactions});
  }
  status.timeline = DescribeTimeline(job, *view.verdict, view.wall_offset_ns, view.judged);
}

}  // namespace

JobStatus DescribeJob(const engine::JobView& view, const JobStatus* before) {
  JobStatus status;
  status.job_id = view.job_id;
  status.uid = view.uid;
  status.watched = view.watched;
  status.running = view.running;
  status.verdict_changes = view.verdict_changes;
  status.verdict = *view.verdict;
  if (!view.why_fewer.empty()) {
    status.verdict.mutable_data_quality()->add_notes("fewer jobs are watched: " +
                                                     std::string(view.why_fewer));
  }
  if (!view.watched) {
    if (view.uid >= 0) status.user = std::to_string(view.uid);
  } else if (before != nullptr) {
    status.user = before->user;
    status.suspension = before->suspension;
  }
  if (view.window != nullptr) DescribeWindow(view, status);
  return status;
}

}  // namespace rankscope::status
