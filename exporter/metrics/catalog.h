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
              "User and system CPU time spent by the exporter, in seconds.", "", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"process_max_fds", MetricType::kGauge, "",
              "Maximum number of open file descriptors of the exporter.", ""},
    MetricRow{"process_open_fds", MetricType::kGauge, "",
              "Number of open file descriptors of the exporter.", ""},
    MetricRow{"process_resident_memory_bytes", MetricType::kGauge, "bytes",
              "Resident memory size of the exporter in bytes.", ""},
    MetricRow{"process_start_time_seconds", MetricType::kGauge, "seconds",
              "Start time of the exporter in seconds since the Unix epoch.", ""},
    MetricRow{"process_threads", MetricType::kGauge, "", "Number of threads of the exporter.", ""},
    MetricRow{
        "rankscope_build_info", MetricType::kInfo, "",
        "Version and compiler of the exporter's build, as labels of a series that is always 1.",
        "version,compiler"},
    MetricRow{"rankscope_checkpoint_free_bytes", MetricType::kGauge, "bytes",
              "Free space in bytes on the file system to which the job writes its checkpoints.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_full_in_seconds", MetricType::kGauge, "seconds",
              "Seconds until the checkpoints' file system is full at the rate at which it filled "
              "between saves; absent while it does not fill up.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_interval_seconds", MetricType::kGauge, "seconds",
              "Median time between the job's most recent checkpoints, in seconds.", "job_id",
              Keep::kTraining},
    MetricRow{
        "rankscope_checkpoint_last_bytes", MetricType::kGauge, "bytes",
        "Size in bytes of the newest complete checkpoint, summed over its files on this node.",
        "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_last_save_seconds", MetricType::kGauge, "seconds",
              "Seconds that the job took to save its newest complete checkpoint.", "job_id",
              Keep::kTraining},
    MetricRow{"rankscope_checkpoint_last_timestamp_seconds", MetricType::kGauge, "seconds",
              "Time at which the job's newest complete checkpoint was finished, in seconds since "
              "the Unix epoch.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_saves_total", MetricType::kCounter, "",
              "Number of checkpoints that the job was seen to save or, if its files are not seen, "
              "that its log reports.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_whole", MetricType::kGauge, "",
              "Whether every file of the job's newest checkpoint is complete; absent if no "
              "checkpoint files were seen.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_checkpoint_work_at_risk_seconds", MetricType::kGauge, "seconds",
              "Rank-seconds of training that a failure now would lose: seconds since the newest "
              "complete checkpoint was begun, times the number of ranks.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_config_last_reload_success_timestamp_seconds", MetricType::kGauge,
              "seconds",
              "Time at which the configuration was last read without a mistake, in seconds since "
              "the Unix epoch.",
              ""},
    MetricRow{"rankscope_config_last_reload_successful", MetricType::kGauge, "",
              "Whether the last attempt to read the configuration succeeded; if not, the previous "
              "one is in effect.",
              ""},
    MetricRow{"rankscope_cuda_attached", MetricType::kGauge, "",
              "Whether the rank uses a GPU through CUDA: it has mapped the CUDA driver, and has a "
              "GPU device open or has already launched a kernel, copied or allocated GPU memory.",
              "job_id,rank", Keep::kRankDetail},
    MetricRow{
        "rankscope_cuda_launch_gap_seconds", MetricType::kHistogram, "seconds",
        "Seconds between two consecutive kernel launches of the rank; if launches are counted only "
        "part of the time, gaps that cross the end of a counted period are missing.",
        "job_id,rank", Keep::kRankDetail, Profile::kFull, Since::kUnknown, kLaunchGapBounds},
    MetricRow{"rankscope_disk_behind_seconds", MetricType::kGauge, "seconds",
              "Seconds for which the disk of state.dir has not responded; 0 while it responds.",
              ""},
    MetricRow{"rankscope_documents_damaged_total", MetricType::kCounter, "",
              "Number of stored verdicts and job summaries that were found damaged when they were "
              "read back.",
              "", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{
        "rankscope_documents_waiting", MetricType::kGauge, "",
        "Number of verdicts and job summaries that wait to be written to the disk of state.dir.",
        ""},
    MetricRow{"rankscope_evidence_available", MetricType::kStateSet, "",
              "Whether this store of evidence has reported anything about the job; a missing store "
              "limits the confidence of the verdict.",
              "job_id,store", Keep::kJob},
    MetricRow{
        "rankscope_http_evicted_total", MetricType::kCounter, "",
        "Number of HTTP connections that were closed because they stalled while others waited.", "",
        Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_handshakes_failed_total", MetricType::kCounter, "",
              "Number of TLS connections that ended before a request: no or a wrong certificate of "
              "the client, or none that both sides accept.",
              "", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_responses_total", MetricType::kCounter, "",
              "Number of HTTP responses sent, by status class.", "status", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_scrapes_total", MetricType::kCounter, "",
              "Number of /metrics pages served, by exposition format.", "format", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_http_unauthenticated_total", MetricType::kCounter, "",
              "Number of HTTP requests with a wrong user or password.", "", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_infiniband_errors_total", MetricType::kCounter, "",
              "Number of errors and other link events that the node's RDMA ports counted since the "
              "job's attempt began, by kind; kinds that no port counts are absent.",
              "job_id,kind", Keep::kJob},
    MetricRow{"rankscope_infiniband_ports_down", MetricType::kGauge, "",
              "Number of the node's RDMA ports whose link is not active.", "job_id", Keep::kJob},
    MetricRow{"rankscope_infiniband_received_bytes_total", MetricType::kCounter, "bytes",
              "Bytes received by the node's RDMA ports since the job's attempt began.", "job_id",
              Keep::kJob},
    MetricRow{"rankscope_infiniband_sent_bytes_total", MetricType::kCounter, "bytes",
              "Bytes sent by the node's RDMA ports since the job's attempt began.", "job_id",
              Keep::kJob},
    MetricRow{"rankscope_job_info", MetricType::kInfo, "",
              "User, command (redacted and shortened), attempt and Slurm attributes of the job, as "
              "labels of a series that is always 1.",
              "job_id,user,command,attempt,job_name,account,partition,qos,array_job_id,"
              "array_task_id,het_job_id,nodes,tasks,restart_count,dependency,launcher",
              Keep::kJob},
    MetricRow{"rankscope_job_running", MetricType::kGauge, "",
              "Whether the job has a running process on this node.", "job_id", Keep::kJob},
    MetricRow{"rankscope_job_suspended", MetricType::kGauge, "",
              "Whether all of the job's processes on this node are currently suspended, by the "
              "cgroup freezer or by a stop signal.",
              "job_id", Keep::kJob},
    MetricRow{"rankscope_job_suspended_seconds_total", MetricType::kCounter, "seconds",
              "Seconds for which all of the job's processes on this node were suspended.", "job_id",
              Keep::kJob},
    MetricRow{"rankscope_job_world_size", MetricType::kGauge, "",
              "Number of ranks of the job, as declared by its launcher.", "job_id", Keep::kJob},
    MetricRow{
        "rankscope_jobs_dropped_total", MetricType::kCounter, "",
        "Number of jobs that were not watched because the limit of jobs per node was reached.", ""},
    MetricRow{"rankscope_jobs_limit", MetricType::kGauge, "",
              "Maximum number of jobs that the exporter watches now: state.max_jobs, or fewer when "
              "memory is short.",
              ""},
    MetricRow{
        "rankscope_kernel_events_total", MetricType::kCounter, "",
        "Number of kernel log lines that report hardware errors or blocked processes, by kind; one "
        "Xid may produce several, and kind unconfirmed counts lines in the NVIDIA driver's form "
        "about a GPU that neither the driver nor NVML knows, which are otherwise ignored.",
        "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{
        "rankscope_last_tick_timestamp_seconds", MetricType::kGauge, "seconds",
        "Time at which the values on this page were computed, in seconds since the Unix epoch.",
        ""},
    MetricRow{"rankscope_log_bytes_total", MetricType::kCounter, "bytes",
              "Bytes read from the log stream of the job.", "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_dropped_bytes_total", MetricType::kCounter, "bytes",
              "Bytes of the job's log stream that were lost before they could be read.",
              "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_lines_total", MetricType::kCounter, "",
              "Number of lines read from the log stream of the job.", "job_id,stream", Keep::kLog},
    MetricRow{"rankscope_log_redactions_total", MetricType::kCounter, "",
              "Number of secrets masked in the log stream of the job.", "job_id,stream",
              Keep::kLog},
    MetricRow{"rankscope_log_unattributed_lines_total", MetricType::kCounter, "",
              "Number of log lines that could not be attributed to a job.", ""},
    MetricRow{"rankscope_memory_limit_bytes", MetricType::kGauge, "bytes",
              "Memory limit of the exporter in bytes: state.memory, else the limit of its cgroup, "
              "else 2 GiB.",
              ""},
    MetricRow{"rankscope_memory_used_bytes", MetricType::kGauge, "bytes",
              "Memory of the exporter in bytes that counts towards rankscope_memory_limit_bytes, "
              "without pages that the kernel can reclaim.",
              ""},
    MetricRow{
        "rankscope_notifications_dropped_total", MetricType::kCounter, "",
        "Number of notifications that will not be sent, by reason: their file was damaged, the "
        "disk refused them, their channel took none for a day, too many were waiting, or the "
        "server refused them.",
        "reason", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_notifications_failed_total", MetricType::kCounter, "",
              "Number of attempts to send a notification that failed, by kind of channel; most are "
              "repeated.",
              "channel_kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_notifications_pending", MetricType::kGauge, "",
              "Number of notifications that wait to be sent, by kind of channel.", "channel_kind"},
    MetricRow{"rankscope_notifications_sent_total", MetricType::kCounter, "",
              "Number of messages that a server has taken, by kind of channel; a message may tell "
              "of several jobs.",
              "channel_kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_nvswitch_sxid_errors_total", MetricType::kCounter, "",
              "Number of SXid errors that the node's NVSwitches reported in the kernel log since "
              "the exporter started, by code and by whether the switch calls them fatal; absent "
              "until the first.",
              "sxid,fatal", Keep::kGpu, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_observations_malformed_total", MetricType::kCounter, "",
              "Number of malformed observations that the engine ignored.", ""},
    MetricRow{"rankscope_observations_total", MetricType::kCounter, "",
              "Number of observations that the engine has processed.", ""},
    MetricRow{"rankscope_output_bytes_total", MetricType::kCounter, "bytes",
              "Bytes that processes of jobs wrote to their standard streams, as seen by the BPF "
              "programs, by what became of them: captured, lost for the reason named, or not "
              "output but a copy.",
              "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_output_hook", MetricType::kStateSet, "",
              "Which kernel hook the BPF programs use to see writes to standard streams, cheapest "
              "first; 1 for the one in use.",
              "kind"},
    MetricRow{"rankscope_probe_duty_ratio", MetricType::kGauge, "ratio",
              "Share of the time for which the probe is attached; below 1, its counts are too low.",
              "source,probe"},
    MetricRow{"rankscope_probe_placement_info", MetricType::kInfo, "",
              "Kind of instruction on which the uprobe stands, as a label of a series that is "
              "always 1: nop, push and emulated are cheap, single_step and unknown are not.",
              "source,probe,class"},
    MetricRow{"rankscope_probe_runs_total", MetricType::kCounter, "",
              "Number of times that watched processes hit the probe.", "source,probe",
              Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_probe_seconds_total", MetricType::kCounter, "seconds",
              "CPU seconds that the probe cost watched processes: its number of hits times the "
              "measured cost of one.",
              "source,probe", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_rank_alive", MetricType::kGauge, "",
              "Whether the process of the rank is running.", "job_id,rank", Keep::kRank},
    MetricRow{"rankscope_rank_info", MetricType::kInfo, "",
              "Step, node, GPUs, container and pod of the rank according to its cgroup and "
              "environment, as labels of a series that is always 1.",
              "job_id,rank,step_id,local_rank,node_rank,world_size,node,gpu_uuid,container_id,"
              "k8s_pod_uid,master_addr",
              Keep::kRank},
    MetricRow{"rankscope_recorder_bytes_total", MetricType::kCounter, "bytes",
              "Bytes written to the recordings of jobs.", ""},
    MetricRow{
        "rankscope_recorder_lost_total", MetricType::kCounter, "",
        "Number of observations missing from recordings because the disk was full or too slow.",
        ""},
    MetricRow{"rankscope_recorder_write_errors_total", MetricType::kCounter, "",
              "Number of failed writes of recordings, verdicts and job summaries.", ""},
    MetricRow{"rankscope_run_refusals_total", MetricType::kCounter, "",
              "Number of requests of `rankscope run` that the exporter refused, by kind: for lack "
              "of room, because the job belongs to another user or its owner connected, or because "
              "the message was malformed or not permitted.",
              "kind", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_series", MetricType::kGauge, "", "Number of series on this page.", ""},
    MetricRow{"rankscope_series_dropped_total", MetricType::kCounter, "",
              "Number of series left out of this page, counted at each tick, by reason: a class of "
              "series over metrics.max_series, or a name that is not in the catalogue; "
              "rankscope_series_missing names the metrics.",
              "reason", Keep::kAlways, Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_series_missing", MetricType::kGauge, "",
              "Number of series of this metric that metrics.max_series keeps off this page; absent "
              "for a metric that is complete, and metric other sums what has no room for a name.",
              "metric"},
    MetricRow{"rankscope_source_last_event_timestamp_seconds", MetricType::kGauge, "seconds",
              "Time of the source's last observation, in seconds since the Unix epoch.", "source"},
    MetricRow{"rankscope_source_lost_total", MetricType::kCounter, "",
              "Number of events or bytes that the source knows it has lost.", "source"},
    MetricRow{"rankscope_source_observations_total", MetricType::kCounter, "",
              "Number of observations that the source has sent.", "source", Keep::kAlways,
              Profile::kDefault, Since::kStart},
    MetricRow{"rankscope_source_up", MetricType::kGauge, "",
              "Whether the source works on this node.", "source"},
    MetricRow{"rankscope_tick_seconds", MetricType::kGauge, "seconds",
              "Seconds that the last tick of the exporter took.", ""},
    MetricRow{"rankscope_training_framework_info", MetricType::kInfo, "",
              "Training framework whose log format the job's progress records have, as a label of "
              "a series that is always 1.",
              "job_id,framework", Keep::kTraining},
    MetricRow{"rankscope_training_nonfinite_total", MetricType::kCounter, "",
              "Number of the job's progress records in which this field was NaN or infinite.",
              "job_id,field", Keep::kTraining},
    MetricRow{"rankscope_training_progress_recognised", MetricType::kGauge, "",
              "Whether the job prints progress records in a known log format; without them, "
              "nothing proves that training advances.",
              "job_id", Keep::kTraining},
    MetricRow{"rankscope_verdict", MetricType::kStateSet, "",
              "Current verdict of the running job: 1 for the family that it names, 0 for other "
              "families that some evidence supports; families without a series are 0.",
              "job_id,family", Keep::kVerdict},
    MetricRow{"rankscope_verdict_changes_total", MetricType::kCounter, "",
              "Number of times that the verdict of the job has changed.", "job_id", Keep::kVerdict},
    MetricRow{"rankscope_verdict_confidence_ratio", MetricType::kGauge, "ratio",
              "Confidence of the job's verdict for the family that it names; for any other family, "
              "while the job runs, the score of the evidence for that family; families without a "
              "series are 0.",
              "job_id,family", Keep::kVerdict},
    MetricRow{"rankscope_verdict_info", MetricType::kInfo, "",
              "Attributes of the job's verdict, each from a fixed list of words, as labels of a "
              "series that is always 1; shown until an hour after a failure or five minutes after "
              "a healthy end.",
              "job_id,family,code,sub,scope,domain,severity,phase,state,disposition",
              Keep::kVerdictInfo},
    MetricRow{"rankscope_verdict_onset_timestamp_seconds", MetricType::kGauge, "seconds",
              "Time at which the condition that the job's verdict names began, in seconds since "
              "the Unix epoch.",
              "job_id", Keep::kVerdict},
    MetricRow{"rankscope_verdict_ruled_out", MetricType::kStateSet, "",
              "Whether the evidence rules out the family for the running job.", "job_id,family",
              Keep::kVerdictDetail, Profile::kFull},
    MetricRow{"rankscope_verdict_updated_timestamp_seconds", MetricType::kGauge, "seconds",
              "Time of the last change of the job's verdict, in seconds since the Unix epoch.",
              "job_id", Keep::kVerdict},
    MetricRow{"rankscope_warning_active", MetricType::kStateSet, "",
              "Whether the warning is active for the job; once raised, its series remains, with 0, "
              "as long as the job is shown.",
              "job_id,warning", Keep::kJob},
    MetricRow{
        "rankscope_web_config_last_reload_success_timestamp_seconds", MetricType::kGauge, "seconds",
        "Time at which web.config_file and its certificates were last read without a mistake, "
        "in seconds since the Unix epoch; absent without such a file.",
        ""},
    MetricRow{"rankscope_web_config_last_reload_successful", MetricType::kGauge, "",
              "Whether the last attempt to read web.config_file and its certificates succeeded; if "
              "not, the previous ones are in effect.",
              ""},
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
    case Keep::kVerdictInfo:
    case Keep::kVerdict:
    case Keep::kVerdictDetail:
      return Group::kVerdict;
    case Keep::kJob:
      return Group::kJob;
    case Keep::kTraining:
      return Group::kTraining;
    case Keep::kGpu:
    case Keep::kDcgm:
    case Keep::kGpuDetail:
      return Group::kGpu;
    case Keep::kSlurm:
      return Group::kSlurm;
    case Keep::kLog:
      return Group::kLog;
    case Keep::kRank:
    case Keep::kRankDetail:  // and what a rank holds of a GPU is the GPU's
      return row.name.starts_with("rankscope_gpu_") ? Group::kGpu : Group::kRank;
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
