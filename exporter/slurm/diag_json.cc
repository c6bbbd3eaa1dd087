// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/json_records.h"
#include "exporter/slurm/json_values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kMaxRpcs = 4096;  // as in text
constexpr double kMicrosecond = 1e-6;

struct CountRow {
  std::string_view name;
  std::optional<int64_t> SlurmDiag::*count;
};
constexpr CountRow kCounts[] = {
    {"server_thread_count", &SlurmDiag::server_threads},
    {"agent_queue_size", &SlurmDiag::agent_queue},
    {"dbd_agent_queue_size", &SlurmDiag::dbd_agent_queue},
    {"jobs_submitted", &SlurmDiag::submitted},
    {"jobs_started", &SlurmDiag::started},
    {"jobs_completed", &SlurmDiag::completed},
    {"jobs_canceled", &SlurmDiag::cancelled},
    {"jobs_failed", &SlurmDiag::failed},
    {"jobs_pending", &SlurmDiag::pending},
    {"jobs_running", &SlurmDiag::running},
    {"schedule_queue_length", &SlurmDiag::queue_length},
    {"bf_last_depth", &SlurmDiag::backfill_depth},
};

struct CycleRow {
  std::string_view name;
  std::optional<double> SlurmDiag::*seconds;
};
constexpr CycleRow kCycles[] = {
    {"schedule_cycle_last", &SlurmDiag::cycle_seconds},
    {"schedule_cycle_max", &SlurmDiag::cycle_max_seconds},
    {"schedule_cycle_mean", &SlurmDiag::cycle_mean_seconds},
    {"bf_cycle_last", &SlurmDiag::backfill_seconds},
    {"bf_cycle_mean", &SlurmDiag::backfill_mean_seconds},
};

bool IsKept(std::string_view name) {
  for (const CountRow& row : kCounts) {
    if (row.name == name) return true;
  }
  for (const CycleRow& row : kCycles) {
    if (row.name == name) return true;
  }
  for (const std::string_view other :
       {"req_time_start", "rpcs_by_message_type", "rpcs_by_user", "message_type", "user", "count",
        "total_time", "set", "infinite", "number"}) {
    if (other == name) return true;
  }
  return false;
}

std::vector<RpcCount> ReadRpcs(const Json& list, std::string_view name) {
  std::vector<RpcCount> rpcs;
  if (!list.Is(Json::Kind::kArray)) return rpcs;
  for (const Json& item : list.items()) {
    if (rpcs.size() >= kMaxRpcs) break;
    const auto calls = Number(At(item, "count"));
    const auto microseconds = Number(At(item, "total_time"));
    std::string who = Text(At(item, name), 256);
    if (!calls || !microseconds || who.empty()) continue;
    rpcs.push_back({std::move(who), *calls, static_cast<double>(*microseconds) * kMicrosecond});
  }
  return rpcs;
}

}  // namespace

SlurmDiag ReadDiagJson(std::string text) {
  SlurmDiag diag;
  diag.whole = ForEachJsonRecord(std::move(text), IsKept, [&](const JsonRecord& record) {
    if (record.list != "statistics") return;
    for (const CountRow& row : kCounts) diag.*row.count = Number(At(record.value, row.name));
    for (const CycleRow& row : kCycles) {
      const auto microseconds = Number(At(record.value, row.name));
      if (microseconds) diag.*row.seconds = static_cast<double>(*microseconds) * kMicrosecond;
    }
    diag.since = Time(At(record.value, "req_time_start"));
    diag.rpcs = ReadRpcs(At(record.value, "rpcs_by_message_type"), "message_type");
    diag.users = ReadRpcs(At(record.value, "rpcs_by_user"), "user");
  });
  return diag;
}

}  // namespace rankscope::exporter::slurm
