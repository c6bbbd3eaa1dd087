// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Every metric family that /metrics can show, one row each, sorted by name. Those of ranks and of
// training come from the table of signals (signal_rows.h), those of GPUs stand in gpu_rows.h and
// dcgm_rows.h. Nothing is emitted that is not a row: the snapshot takes families by
// `MetricNamed("...")`, which does not compile for a name that is missing. A metric that is no
// signal is a row here and a line in snapshot.cc. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "detectors/model/launch_gaps.h"
#include "exporter/metrics/dcgm_rows.h"
#include "exporter/metrics/gpu_rows.h"
#include "exporter/metrics/metric_row.h"
#include "exporter/metrics/signal_rows.h"
#include "exporter/metrics/slurm_rows.h"

namespace rankscope::metrics {

// All that have no file of their own.
inline constexpr std::array kNodeRows = {
    MetricRow{"process_cpu_seconds_total", MetricType::kCounter, "seconds",
              "User and system CPU time of the exporter.", "", Keep::kAlways, Profile::kDefault,
              Since::kStart},
    MetricRow{"process_max_fds", MetricType::kGauge, "",
              "Limit of open file descriptors of the exporter.", ""},
    MetricRow{"process_open_fds", MetricType::kGauge, "", "Open file descriptors of the exporter.",
              ""},
    MetricRow{"process_resident_memory_bytes", MetricType::kGauge, "bytes",
              "Resident memory of the exporter.", ""},
    MetricRow{"process_start_time_seconds", MetricType::kGauge, "seconds",
              "Start of the exporter, seconds since the epoch.", ""},
    MetricRow{"process_threads", MetricType::kGauge, "", "Threads of the exporter.", ""},
    MetricRow{"rankscope_build_info", MetricType::kInfo, "", "The build that answers.",
              "version,compiler"},
    MetricRow{"rankscope_checkpoint_free_bytes", MetricType::kGauge, "bytes",
              "Free space of the file system that the job's checkpoints are written to.", "job_id",
              Keep::kTraining},
    MetricRow{
        "rankscope_checkpoint_full_in_seconds", MetricType::kGauge, "seconds",
        "Time until that file system is full, at the rate at which it has filled from save to "
        "save; absent where it does not fill.",
        "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_interval_seconds", MetricType::kGauge, "seconds",
              "Time between checkpoints, the median of the newest.", "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_last_bytes", MetricType::kGauge, "bytes",
              "Size of the newest whole checkpoint, all files of this node.", "job_id",
              Keep::kTraining},
    MetricRow{"rankscope_checkpoint_last_save_seconds", MetricType::kGauge, "seconds",
              "What saving the newest whole checkpoint took.", "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_last_timestamp_seconds", MetricType::kGauge, "seconds",
              "When the newest whole checkpoint was complete, seconds since the epoch.", "job_id",
              Keep::kTraining},
    MetricRow{"rankscope_checkpoint_saves_total", MetricType::kCounter, "",
              "Checkpoints that the job was seen to save, or else that its log reports.", "job_id",
              Keep::kTraining},
    MetricRow{"rankscope_checkpoint_whole", MetricType::kGauge, "",
              "Whether every file of the newest checkpoint is complete; absent where no files were "
              "seen.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_work_at_risk_seconds", MetricType::kGauge, "seconds",
              "Rank-seconds that a failure now would lose: time since the newest whole checkpoint "
              "was begun, times ranks.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_cuda_attached", MetricType::kGauge, "",
              "Whether the rank uses a GPU through CUDA: has its code mapped, and holds a device "
              "open or has launched, copied or been given memory.",
              "job_id,rank", Keep::kRank},
    MetricRow{"rankscope_cuda_launch_gap_seconds", MetricType::kHistogram, "seconds",
              "Time between two launches of the rank; where launches are counted in windows, gaps "
              "that reach out of one are missing.",
              "job_id,rank", Keep::kRank, Profile::kFull, Since::kUnknown, kLaunchGapBounds},
    MetricRow{"rankscope_disk_behind_seconds", MetricType::kGauge, "seconds",
              "For how long the disk of state.dir has not answered; 0 while it does.", ""},
    MetricRow{"rankscope_documents_damaged_total", MetricType::kCounter, "",
              "Kept verdicts and summaries that were not as written when they were read.", "",
              Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_documents_waiting", MetricType::kGauge, "",
              "Verdicts and summaries that are not yet on the disk of state.dir.", ""},
    MetricRow{"rankscope_evidence_available", MetricType::kStateSet, "",
              "Whether this store of evidence has said anything about the job; a missing store "
              "caps the confidence.",
              "job_id,store", Keep::kJob},
    MetricRow{"rankscope_http_evicted_total", MetricType::kCounter, "",
              "Connections that stalled and gave way to others.", "", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_responses_total", MetricType::kCounter, "",
              "Answers to HTTP requests, by class of status.", "status", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_scrapes_total", MetricType::kCounter, "",
              "Pages of metrics served, by exposition format.", "format", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_infiniband_errors_total", MetricType::kCounter, "",
              "What the node's RDMA ports counted besides bytes since the job's attempt began, by "
              "kind; kinds that no port counts are absent.",
              "job_id,kind", Keep::kJob},
    MetricRow{"rankscope_infiniband_ports_down", MetricType::kGauge, "",
              "RDMA ports of the node whose link is not active.", "job_id", Keep::kJob},
    MetricRow{"rankscope_infiniband_received_bytes_total", MetricType::kCounter, "bytes",
              "Bytes that the node's RDMA ports received since the job's attempt began.", "job_id",
              Keep::kJob},
    MetricRow{"rankscope_infiniband_sent_bytes_total", MetricType::kCounter, "bytes",
              "Bytes that the node's RDMA ports sent since the job's attempt began.", "job_id",
              Keep::kJob},
    MetricRow{"rankscope_job_info", MetricType::kInfo, "",
              "The job's user, command (redacted, cut), attempt, and what Slurm's environment says "
              "of it.",
              "job_id,user,command,attempt,job_name,account,partition,qos,array_job_id,"
              "array_task_id,het_job_id,nodes,tasks,restart_count,dependency,launcher",
              Keep::kJob},
    MetricRow{"rankscope_job_running", MetricType::kGauge, "",
              "Whether the job has a live process on this node.", "job_id", Keep::kJob},
    MetricRow{"rankscope_job_suspended", MetricType::kGauge, "",
              "Whether all of the job's processes on this node are frozen or stopped together.",
              "job_id", Keep::kJob},
    MetricRow{"rankscope_job_suspended_seconds_total", MetricType::kCounter, "seconds",
              "Time for which they were.", "job_id", Keep::kJob},
    MetricRow{"rankscope_job_world_size", MetricType::kGauge, "",
              "Ranks of the job as its launcher declared them.", "job_id", Keep::kJob},
    MetricRow{"rankscope_jobs_dropped_total", MetricType::kCounter, "",
              "Jobs not watched because the limit of jobs per node was reached.", ""},
    MetricRow{"rankscope_jobs_limit", MetricType::kGauge, "",
              "Jobs that may be watched now: state.max_jobs, and fewer where memory is short.", ""},
    MetricRow{
        "rankscope_kernel_events_total", MetricType::kCounter, "",
        "Lines of the kernel's log that tell of hardware or of something that holds processes "
        "up, by kind; of one Xid there may be several. unconfirmed: in the NVIDIA driver's form, "
        "where neither that driver nor its library knows the card; nothing is made of it.",
        "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_last_tick_timestamp_seconds", MetricType::kGauge, "seconds",
              "When the values on this page were computed, seconds since the epoch.", ""},
    MetricRow{"rankscope_log_bytes_total", MetricType::kCounter, "bytes",
              "Bytes read of a log stream of the job.", "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_dropped_bytes_total", MetricType::kCounter, "bytes",
              "Bytes of a log stream of the job that were lost before they could be read.",
              "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_lines_total", MetricType::kCounter, "",
              "Lines read of a log stream of the job.", "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_redactions_total", MetricType::kCounter, "",
              "Secrets masked in a log stream of the job.", "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_unattributed_lines_total", MetricType::kCounter, "",
              "Log lines whose job is not known.", ""},
    MetricRow{"rankscope_memory_limit_bytes", MetricType::kGauge, "bytes",
              "Memory that the exporter keeps within: state.memory, its cgroup's limit, or 2 GiB.",
              ""},
    MetricRow{"rankscope_memory_used_bytes", MetricType::kGauge, "bytes",
              "What counts of it, without pages that the kernel can take back.", ""},
    MetricRow{
        "rankscope_nvswitch_sxid_errors_total", MetricType::kCounter, "",
        "SXids of the node's NVSwitches in the kernel's log since the exporter's start, by code "
        "and whether the switch calls them fatal; absent until the first.",
        "sxid,fatal", Keep::kGpu, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_observations_malformed_total", MetricType::kCounter, "",
              "Observations that could not be used.", ""},
    MetricRow{"rankscope_observations_total", MetricType::kCounter, "",
              "Observations that the engine has taken.", ""},
    MetricRow{
        "rankscope_output_bytes_total", MetricType::kCounter, "bytes",
        "What processes of jobs wrote to their standard streams, as the kernel's programs saw "
        "it: captured, lost for a reason, or a copy and so not output.",
        "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_output_hook", MetricType::kStateSet, "",
              "Where the kernel's programs meet a write, the cheapest way first.", "kind"},
    MetricRow{"rankscope_probe_duty_ratio", MetricType::kGauge, "ratio",
              "Part of the time in which the probe is attached; below 1, its counts are too low.",
              "source,probe"},
    MetricRow{"rankscope_probe_placement_info", MetricType::kInfo, "",
              "On what kind of instruction the probe stands: nop, push and emulated are cheap, "
              "single_step and unknown are not.",
              "source,probe,class"},
    MetricRow{"rankscope_probe_runs_total", MetricType::kCounter, "",
              "How often the probe was hit by processes that are watched.", "source,probe",
              Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_probe_seconds_total", MetricType::kCounter, "seconds",
              "CPU time that the probe has taken from processes that are watched: its hits by what "
              "one was measured to take.",
              "source,probe", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_rank_alive", MetricType::kGauge, "", "Whether the rank's process lives.",
              "job_id,rank", Keep::kRank},
    MetricRow{
        "rankscope_rank_info", MetricType::kInfo, "",
        "Where the rank runs: its step, node, cards, container and pod, as its cgroup and its "
        "environment say.",
        "job_id,rank,step_id,local_rank,node_rank,world_size,node,gpu_uuid,container_id,"
        "k8s_pod_uid,master_addr",
        Keep::kRank},
    MetricRow{"rankscope_recorder_bytes_total", MetricType::kCounter, "bytes",
              "Bytes written to recordings.", ""},
    MetricRow{"rankscope_recorder_lost_total", MetricType::kCounter, "",
              "Observations that a recording does not have: the disk was full or too slow.", ""},
    MetricRow{"rankscope_recorder_write_errors_total", MetricType::kCounter, "",
              "Writes to recordings, verdicts and summaries that failed.", ""},
    MetricRow{
        "rankscope_run_refusals_total", MetricType::kCounter, "",
        "What wrappers of commands were refused, by kind: a connection for want of room, a job "
        "of another user's, a job whose owner came, a message, a fact not theirs to tell.",
        "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_series", MetricType::kGauge, "", "Series on this page.", ""},
    MetricRow{"rankscope_series_dropped_total", MetricType::kCounter, "",
              "Series left out, counted at each tick, by reason: the cap of series per node or a "
              "name not catalogued.",
              "reason", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_source_last_event_timestamp_seconds", MetricType::kGauge, "seconds",
              "When the source last said something, seconds since the epoch.", "source"},
    MetricRow{"rankscope_source_lost_total", MetricType::kCounter, "",
              "Events or bytes that the source knows it has lost.", "source"},
    MetricRow{"rankscope_source_observations_total", MetricType::kCounter, "",
              "Observations that came from the source.", "source", Keep::kAlways, Profile::kDefault,
              Since::kStart},
    MetricRow{"rankscope_source_up", MetricType::kGauge, "",
              "Whether the source works on this node.", "source"},
    MetricRow{"rankscope_tick_seconds", MetricType::kGauge, "seconds", "What the last tick took.",
              ""},
    MetricRow{"rankscope_training_framework_info", MetricType::kInfo, "",
              "The dialect in which the job prints its progress.", "job_id,framework",
              Keep::kTraining},
    MetricRow{"rankscope_training_nonfinite_total", MetricType::kCounter, "",
              "Progress records whose value of this field was not finite.", "job_id,field",
              Keep::kTraining},
    MetricRow{"rankscope_training_progress_recognised", MetricType::kGauge, "",
              "Whether the job prints progress in a dialect that is understood; without it nothing "
              "proves progress.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_verdict", MetricType::kStateSet, "",
              "The job's verdict: 1 for the family that it names, 0 for every other.",
              "job_id,family", Keep::kVerdict},
    MetricRow{"rankscope_verdict_changes_total", MetricType::kCounter, "",
              "Changes of the job's verdict.", "job_id", Keep::kVerdict},
    MetricRow{"rankscope_verdict_confidence_ratio", MetricType::kGauge, "ratio",
              "Confidence in the verdict for the family that it names; for another family, what "
              "speaks for it.",
              "job_id,family", Keep::kVerdictDetail},
    MetricRow{"rankscope_verdict_info", MetricType::kInfo, "",
              "What the verdict says, in closed lists of words.",
              "job_id,family,code,sub,scope,domain,severity,phase,state", Keep::kVerdict},
    MetricRow{"rankscope_verdict_onset_timestamp_seconds", MetricType::kGauge, "seconds",
              "When it began, seconds since the epoch.", "job_id", Keep::kVerdict},
    MetricRow{"rankscope_verdict_ruled_out", MetricType::kStateSet, "",
              "Whether the evidence rules the family out.", "job_id,family", Keep::kVerdictDetail},
    MetricRow{"rankscope_verdict_updated_timestamp_seconds", MetricType::kGauge, "seconds",
              "When the verdict last changed, seconds since the epoch.", "job_id", Keep::kVerdict},
    MetricRow{"rankscope_warning_active", MetricType::kStateSet, "",
              "Whether the warning stands; once raised it stays, as 0, while the job is shown.",
              "job_id,warning", Keep::kJob},
};

template <size_t N, size_t M>
constexpr std::array<MetricRow, N + M> Merged(const std::array<MetricRow, N>& some,
                                              const std::array<MetricRow, M>& more) {
  std::array<MetricRow, N + M> all{};
  std::merge(some.begin(), some.end(), more.begin(), more.end(), all.begin(),
             [](const MetricRow& a, const MetricRow& b) { return a.name < b.name; });
  return all;
}

inline constexpr auto kCatalog =
    Merged(Merged(Merged(Merged(kNodeRows, kGpuRows), kDcgmRows), kSlurmRows), kSignalRows);

constexpr bool CatalogIsSorted() {
  for (size_t i = 1; i < kCatalog.size(); ++i) {
    if (!(kCatalog[i - 1].name < kCatalog[i].name)) return false;
  }
  return true;
}
static_assert(
    CatalogIsSorted(),
    "catalog.h, gpu_rows.h, dcgm_rows.h, slurm_rows.h, signals.inc: rows are sorted by name, each "
    "once");

// Place of a row in kCatalog.
using MetricId = size_t;

// At compile time; a name that is no row does not compile.
consteval MetricId MetricNamed(std::string_view name) {
  for (size_t i = 0; i < kCatalog.size(); ++i) {
    if (kCatalog[i].name == name) return i;
  }
  throw "catalog.h has no such metric";
}

// Of a signal that has one. By halves: clang allows a constant a million steps in all.
constexpr MetricId MetricOf(const SignalRow& signal) {
  const std::string_view name = signal.metric_name();
  const auto found = std::lower_bound(
      kCatalog.begin(), kCatalog.end(), name,
      [](const MetricRow& row, std::string_view wanted) { return row.name < wanted; });
  const bool there = found != kCatalog.end() && found->name == name;
  return there ? static_cast<MetricId>(found - kCatalog.begin()) : kCatalog.size();
}

// Every metric that a signal names, a GPU's too, has a row.
constexpr bool SignalsAreCatalogued() {
  return std::all_of(kSignals.begin(), kSignals.end(), [](const SignalRow& signal) {
    return signal.metric.empty() || MetricOf(signal) < kCatalog.size();
  });
}
static_assert(SignalsAreCatalogued(), "signals.inc: a metric without help or without a row");

// All rows, sorted by name. For `list metrics` and contract tests.
std::span<const MetricRow> Catalog();

// nullptr when the name is no row.
const MetricRow* FindMetric(std::string_view name);

// What ?collect[]= and ?exclude[]= name: rows of one subject.
enum class Group : uint8_t {
  kExporter,
  kGpu,
  kJob,
  kLog,
  kProcess,
  kRank,
  kSlurm,
  kSource,
  kTraining,
  kVerdict,
};
inline constexpr std::array<std::string_view, 10> kGroupNames = {
    "exporter", "gpu", "job", "log", "process", "rank", "slurm", "source", "training", "verdict"};

constexpr Group GroupOf(const MetricRow& row) {
  switch (row.keep) {
    case Keep::kVerdict:
    case Keep::kVerdictDetail:
      return Group::kVerdict;
    case Keep::kJob:
      return Group::kJob;
    case Keep::kTraining:
      return Group::kTraining;
    case Keep::kGpu:
    case Keep::kGpuDetail:
      return Group::kGpu;
    case Keep::kSlurm:
      return Group::kSlurm;
    case Keep::kLog:
      return Group::kLog;
    case Keep::kRank:
      return Group::kRank;
    case Keep::kAlways:
      break;
  }
  if (row.name.starts_with("process_")) return Group::kProcess;
  return row.name.starts_with("rankscope_source_") ? Group::kSource : Group::kExporter;
}

class GroupSet {
 public:
  static constexpr GroupSet All() { return GroupSet((1u << kGroupNames.size()) - 1); }
  static constexpr GroupSet None() { return GroupSet(0); }

  constexpr void Add(Group group) { bits_ |= 1u << static_cast<unsigned>(group); }
  constexpr void Remove(Group group) { bits_ &= ~(1u << static_cast<unsigned>(group)); }
  constexpr bool Has(const MetricRow& row) const {
    return (bits_ >> static_cast<unsigned>(GroupOf(row)) & 1u) != 0;
  }
  constexpr bool operator==(const GroupSet&) const = default;

 private:
  constexpr explicit GroupSet(unsigned bits) : bits_(bits) {}
  unsigned bits_;
};

// gauge | counter | info | stateset | histogram
std::string_view TypeName(MetricType type);

}  // namespace rankscope::metrics
