// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the loop thread publishes at each tick and everybody else reads: immutable plain data behind
// a shared_ptr.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/model/gpu_reading.h"
#include "detectors/model/library_call.h"
#include "detectors/model/observation.h"
#include "detectors/model/slurm_report.h"
#include "detectors/model/time.h"
#include "detectors/status/job_status.h"
#include "exporter/metrics/format.h"

namespace rankscope::metrics {

// As exporter/source.h has it.
struct ProbeStatus {
  std::string probe;
  std::vector<std::string> sites;
  int64_t runs = 0;
  double seconds = 0;
  double duty_ratio = 1;
};

struct XidStatus {
  std::string card;
  int32_t code = 0;
  int64_t count = 0;
  double last_wall_seconds = kUnknown;
};

struct SourceStatus {
  std::string name;  // row of sources.cc
  Availability state = Availability::kUnspecified;
  std::string reason;  // why it is not up, with the remedy
  int64_t lost = 0;
  int64_t observations = 0;
  double last_event_wall_seconds = kUnknown;
  std::vector<std::pair<std::string_view, int64_t>> counts;  // of its own, by name
  std::vector<ProbeStatus> probes{};
  std::shared_ptr<const std::vector<GpuStatus>> gpus = nullptr;  // null: it polls none
  bool xids_heard = false;  // Xids are reported, and this source passes them on
  std::vector<XidStatus> xids{};
  std::vector<XidPending> xids_pending{};
  std::vector<SxidCount> sxids{};
  std::shared_ptr<const std::vector<GpuProfile>> gpu_profiles = nullptr;  // null: it asks nobody
  std::vector<LibraryCall> library_calls{};
  std::shared_ptr<const SlurmReport> slurm = nullptr;  // null: it does not ask Slurm's controller
};

inline constexpr std::array<std::string_view, 4> kStatusClasses = {"2xx", "3xx", "4xx", "5xx"};

// What the listener has answered since its start.
struct HttpStatus {
  std::array<int64_t, kStatusClasses.size()> responses{};
  std::array<int64_t, kFormatNames.size()> scrapes{};  // pages of metrics, by Format
  int64_t evicted = 0;  // connections that stalled and gave way to others
  int64_t handshakes_failed = 0;
  int64_t unauthenticated = 0;  // requests whose user or password was wrong
};

// What was read from a file, and may be read again.
struct ReloadStatus {
  bool good = true;                     // the last reading
  double good_wall_seconds = kUnknown;  // of the last good one; kUnknown: there is no such file
};

// By which channels somebody is told, and why a message is not sent.
inline constexpr std::array<std::string_view, 5> kNotifyKinds = {"email", "alertmanager", "webhook",
                                                                 "slack", "teams"};
inline constexpr std::array<std::string_view, 5> kNotifyLosses = {"damaged", "disk", "expired",
                                                                  "full", "refused"};

struct NotifyStatus {
  std::array<int64_t, kNotifyKinds.size()> sent{}, failed{}, pending{};
  std::array<int64_t, kNotifyLosses.size()> dropped{};
};

struct AgentStatus {
  std::string version;
  std::string node;
  double start_wall_seconds = 0;
  bool ready = false;
  std::string not_ready_reason;
  std::vector<SourceStatus> sources;
  engine::Engine::Counters engine;
  int64_t max_jobs = 0;            // that may be watched now
  int64_t memory_limit_bytes = 0;  // 0 = none
  int64_t memory_used_bytes = 0;
  HttpStatus http;
  ReloadStatus config, web_config;
  std::optional<NotifyStatus> notify = {};  // nullopt: nobody is told
  int64_t recorder_write_errors = 0;
  int64_t recorder_bytes = 0;
  int64_t recorder_lost = 0;
  int64_t documents_waiting = 0;
  int64_t documents_damaged = 0;
  double disk_behind_seconds = 0;
  double tick_seconds = 0;  // what the last tick took
};

// Shared by all who publish and read: a job that does not change is not copied again.
using JobList = std::vector<std::shared_ptr<const JobStatus>>;

struct Published {
  Timestamp tick;
  double wall_seconds = 0;
  AgentStatus agent;
  JobList jobs;  // by job id, none null; a finished job stays a while
  // What is left of jobs, a line each (detectors/model/job_summary.h), by job id; null: of none.
  std::shared_ptr<const std::map<std::string, std::string, std::less<>>> summaries = nullptr;
};

}  // namespace rankscope::metrics
