// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The table of sources: what can be asked of this machine. The row's index is the source's number
// in recordings, so rows are only ever added at the end. Called by the agent and by `check` and
// `list`; any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/job_summary.h"
#include "exporter/config/config.h"
#include "exporter/gpu/xid_ledger.h"
#include "exporter/run/job_claims.h"
#include "exporter/slurm/questions.h"
#include "exporter/source.h"

namespace rankscope::attribution {
struct ProcessInfo;
}
namespace rankscope::collectors {
class HeardFiles;
class ProcessTable;
}  // namespace rankscope::collectors
namespace rankscope::probes {
class TrackedMap;
}

namespace rankscope::exporter {

// What the factories build from.
struct SourceContext {
  const Config& config;
  std::shared_ptr<collectors::ProcessTable> processes;
  std::shared_ptr<probes::TrackedMap> tracked;  // the same, as the kernel's programs see it
  // A wrapped command has ended and its wrapper waits for the verdict.
  std::function<void(const std::string& job_id)> on_wrapper_end;
  // The last observation of a wrapper that a restart has restored.
  std::function<int64_t(const std::string& job_id, int slot)> resume_after;
  // A process as the engine sees it; null: of no job. Good until the next observation.
  std::function<const attribution::ProcessInfo*(const ProcessKey& key)> who;
  // Calls `tell` each time before jobs are judged, for as long as the sources live.
  std::function<void(std::function<void()> tell)> before_judging;
  // What the engine wants to know of Slurm.
  std::shared_ptr<slurm::Questions> slurm_questions = std::make_shared<slurm::Questions>();
  // What is left of a job that ran on other nodes.
  std::function<void(const JobSummary& summary)> on_summary = nullptr;
  // Two sources tell of the same ones.
  std::shared_ptr<collectors::XidLedger> xids = std::make_shared<collectors::XidLedger>();
  // The highest number of a stream that an earlier daemon heard in the kernel; 0 = none.
  uint32_t streams_heard = 0;
  // The files that were heard, by it and since, and how much of them.
  std::shared_ptr<const collectors::HeardFiles> files_heard = nullptr;
  int64_t wall_offset_ns = 0;
  // Whose a job is, by the processes that are known of it, and whether anything is kept of it.
  std::function<std::optional<run::JobOwner>(const std::string& job_id)> owner_of = nullptr;
  std::function<bool(const std::string& job_id)> knows_job = nullptr;
  // Asks Slurm whose a job is (false: nobody can tell), and what it has answered.
  std::function<bool(const std::string& job_id)> ask_owner = nullptr;
  std::function<void(const std::string& job_id, std::optional<uint32_t> uid)> on_owner = nullptr;
  // Whom the job wants to be told, as Slurm has it.
  std::function<void(const std::string& job_id, std::string wish)> on_wish = nullptr;
};

struct SourceRow {
  std::string_view name;           // config key and label value
  std::string_view what;           // one phrase
  std::string_view needs;          // privileges, kernel options
  Duration default_interval;       // 0 = driven by events
  bool in_kernel;                  // runs programs in the kernel: `ebpf.mode` rules it
  std::string_view superseded_by;  // the source that tells all of it and more; this one rests while
                                   // that is up
  std::unique_ptr<Source> (*make)(const SourceContext& context);
  std::string_view capabilities = {};  // capabilities(7) to keep for it: "bpf,perfmon"
  bool admin_on_old_kernels = false;   // before 6.6 its probes are perf events: CAP_SYS_ADMIN
};

std::span<const SourceRow> SourceTable();

// The configuration's defaults for the rows above.
std::vector<SourceSettings> SourceDefaults();

inline constexpr uint32_t kRunSource = 0;
// The number under which the agent itself speaks (Epoch, Tick): no row.
inline constexpr uint32_t kAgentSource = 255;

}  // namespace rankscope::exporter
