// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kMaxRpcs = 4096;  // Slurm has 300 kinds of calls; users are cut here
constexpr double kMicrosecond = 1e-6;

// A line means what it says under its heading: both schedulers have a "Last cycle".
enum class Section : uint8_t { kTop, kMain, kBackfill, kTypes, kUsers, kOther };

struct Heading {
  std::string_view begin;
  Section section;
};
constexpr Heading kHeadings[] = {
    {"Main schedule statistics", Section::kMain},
    {"Backfilling stats", Section::kBackfill},
    {"Remote Procedure Call statistics by message type", Section::kTypes},
    {"Remote Procedure Call statistics by user", Section::kUsers},
    {"Main scheduler exit", Section::kOther},
    {"Backfill exit", Section::kOther},
    {"Pending RPC", Section::kOther},
    {"Latency for", Section::kOther},
};

struct CountRow {
  Section section;
  std::string_view name;
  std::optional<int64_t> SlurmDiag::*count;
};
constexpr CountRow kCounts[] = {
    {Section::kTop, "Server thread count", &SlurmDiag::server_threads},
    {Section::kTop, "Agent queue size", &SlurmDiag::agent_queue},
    {Section::kTop, "DBD Agent queue size", &SlurmDiag::dbd_agent_queue},
    {Section::kTop, "Jobs submitted", &SlurmDiag::submitted},
    {Section::kTop, "Jobs started", &SlurmDiag::started},
    {Section::kTop, "Jobs completed", &SlurmDiag::completed},
    {Section::kTop, "Jobs canceled", &SlurmDiag::cancelled},
    {Section::kTop, "Jobs failed", &SlurmDiag::failed},
    {Section::kTop, "Jobs pending", &SlurmDiag::pending},
    {Section::kTop, "Jobs running", &SlurmDiag::running},
    {Section::kMain, "Last queue length", &SlurmDiag::queue_length},
    {Section::kBackfill, "Last depth cycle", &SlurmDiag::backfill_depth},
};

struct CycleRow {
  Section section;
  std::string_view name;
  std::optional<double> SlurmDiag::*seconds;
};
constexpr CycleRow kCycles[] = {
    {Section::kMain, "Last cycle", &SlurmDiag::cycle_seconds},
    {Section::kMain, "Max cycle", &SlurmDiag::cycle_max_seconds},
    {Section::kMain, "Mean cycle", &SlurmDiag::cycle_mean_seconds},
    {Section::kBackfill, "Last cycle", &SlurmDiag::backfill_seconds},
    {Section::kBackfill, "Mean cycle", &SlurmDiag::backfill_mean_seconds},
};

std::optional<int64_t> NotNegative(std::string_view text) {
  const auto value = ReadInteger(Said(text));
  return value && *value >= 0 ? value : std::nullopt;
}

// The number behind "count:" or "total_time:", padded on either side.
std::optional<int64_t> NumberBehind(std::string_view line, std::string_view name) {
  const size_t at = line.rfind(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view value = line.substr(at + name.size());
  value = Said(value);
  return NotNegative(value.substr(0, value.find_first_of(" \t")));
}

// "REQUEST_NODE_INFO   ( 2007) count:12 ave_time:130 total_time:1560"
std::optional<RpcCount> ReadRpc(std::string_view line) {
  const size_t bracket = line.find('(');
  const auto calls = NumberBehind(line, " count:");
  const auto microseconds = NumberBehind(line, " total_time:");
  if (bracket == std::string_view::npos || !calls || !microseconds) return std::nullopt;
  RpcCount rpc;
  rpc.name = Bounded(Said(line.substr(0, bracket)), 256);
  if (rpc.name.empty()) return std::nullopt;
  rpc.calls = *calls;
  rpc.seconds = static_cast<double>(*microseconds) * kMicrosecond;
  return rpc;
}

// "Data since      Mon Nov 23 00:00:00 2026 (1795388400)"
int64_t TimeInBrackets(std::string_view line) {
  const size_t open = line.rfind('(');
  if (open == std::string_view::npos) return 0;
  const std::string_view rest = line.substr(open + 1);
  return ReadTime(rest.substr(0, rest.find(')')));
}

void ReadNumber(std::string_view line, Section section, SlurmDiag& diag) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = Said(line.substr(0, colon));
  const auto value = NotNegative(line.substr(colon + 1));
  if (!value) return;
  for (const CountRow& row : kCounts) {
    if (row.section == section && row.name == name) diag.*row.count = value;
  }
  for (const CycleRow& row : kCycles) {
    if (row.section == section && row.name == name) {
      diag.*row.seconds = static_cast<double>(*value) * kMicrosecond;
    }
  }
}

}  // namespace

SlurmDiag ReadDiagText(std::string_view text) {
  SlurmDiag diag;
  Section section = Section::kTop;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto* heading =
        std::find_if(std::begin(kHeadings), std::end(kHeadings),
                     [&](const Heading& row) { return line.starts_with(row.begin); });
    if (heading != std::end(kHeadings)) {
      section = heading->section;
    } else if (section == Section::kTop && line.starts_with("Data since")) {
      diag.since = TimeInBrackets(line);
    } else if (section == Section::kTypes || section == Section::kUsers) {
      auto& list = section == Section::kTypes ? diag.rpcs : diag.users;
      if (auto rpc = ReadRpc(line); rpc && list.size() < kMaxRpcs) list.push_back(*std::move(rpc));
    } else {
      ReadNumber(line, section, diag);
    }
  }
  return diag;
}

}  // namespace rankscope::exporter::slurm
