// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_fields.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace rankscope::exporter::slurm {
namespace {

// Of 150 names of a job. Whatever stands within one that is not here is not read either.
constexpr std::array kKept = std::to_array<std::string_view>({
    "CPUs",
    "account",
    "admin_comment",
    "administrator",
    "alloc_cpus",
    "alloc_memory",
    "allocated",
    "allocation_nodes",
    "array",
    "array_job_id",
    "array_task_id",
    "array_task_string",
    "batch_host",
    "boot_time",
    "cluster",
    "command",
    "comment",
    "component",
    "count",
    "cpu_load",
    "cpus",
    "current",
    "current_working_directory",
    "dependency",
    "derived_exit_code",
    "description",
    "elapsed",
    "eligible",
    "eligible_time",
    "end",
    "end_time",
    "exit_code",
    "failed_node",
    "free_mem",
    "free_memory",
    "gres",
    "gres_used",
    "het",
    "het_job_id",
    "het_job_offset",
    "id",
    "infinite",
    "job",
    "job_id",
    "job_offset",
    "job_state",

    "kill_request_user",
    "limit",
    "list",
    "name",
    "node",
    "node_count",
    "nodes",
    "number",
    "partition",
    "partitions",
    "preempt_time",
    "priority",
    "qos",
    "range",
    "real_memory",
    "reason",
    "reason_changed_at",
    "reason_set_by_user",
    "requested",
    "requeue",
    "required",
    "restart_cnt",
    "return_code",

    "set",
    "signal",
    "signal_id",
    "slurmd_start_time",
    "slurmd_version",
    "standard_error",
    "standard_output",
    "start",
    "start_time",
    "state",
    "state_flags",
    "state_reason",
    "status",
    "stderr",
    "stderr_expanded",
    "stdout",
    "stdout_expanded",
    "step",
    "step_id",
    "steps",
    "submission",
    "submit_line",
    "submit_time",
    "suspend_time",
    "suspended",
    "task",
    "task_id",
    "tasks",
    "time",
    "time_limit",
    "total",
    "tres",
    "tres_alloc_str",
    "tres_req_str",
    "tres_used",
    "type",
    "user",
    "user_id",
    "user_name",
    "version",
    "working_directory",
});
static_assert(std::is_sorted(kKept.begin(), kKept.end()));

// By size, so that most names are told by one look: an answer of 5,000 jobs has half a million.
constexpr size_t kLongest = 32;
constexpr auto kBySize = [] {
  auto names = kKept;
  std::sort(names.begin(), names.end(), [](std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}();
// Where the names of a size begin.
constexpr auto kFirstOfSize = [] {
  std::array<uint8_t, kLongest + 2> first{};
  for (size_t size = 0; size < first.size(); ++size) {
    while (first[size] < kBySize.size() && kBySize[first[size]].size() < size) ++first[size];
  }
  return first;
}();
static_assert(kBySize.size() < 256 && kBySize.back().size() <= kLongest);

}  // namespace

bool IsReadName(std::string_view name) {
  if (name.empty() || name.size() > kLongest) return false;
  const char first = name.front(), last = name.back();
  for (size_t at = kFirstOfSize[name.size()]; at < kFirstOfSize[name.size() + 1]; ++at) {
    const std::string_view kept = kBySize[at];
    if (kept.front() == first && kept.back() == last && kept == name) return true;
  }
  return false;
}

}  // namespace rankscope::exporter::slurm
