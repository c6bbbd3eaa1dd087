// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/node_keys.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

#include "exporter/slurm/fields.h"

namespace rankscope::exporter::slurm {
namespace {

void SetLoad(std::string_view value, SlurmNode& node) {
  double load = 0;
  const char* end = value.data() + value.size();
  const auto [last, error] = std::from_chars(value.data(), end, load, std::chars_format::fixed);
  if (error == std::errc() && last == end && load >= 0) node.cpu_load = load;
}

void SetNodeState(std::string_view value, SlurmNode& node) {
  SetState(ReadNodeState(value), node);
}

// "Not responding [slurm@1795442400]". Of a reason of several lines who and when stand behind the
// first, and each line that follows is indented.
void SetReason(std::string_view value, SlurmNode& node) {
  for (size_t open = value.rfind(" ["); open != std::string_view::npos && open > 0;
       open = value.rfind(" [", open - 1)) {
    const std::string_view mark = value.substr(open + 2);
    const size_t close = mark.find(']');
    const size_t at = mark.substr(0, close).rfind('@');
    if (close == std::string_view::npos || at == std::string_view::npos) continue;
    const std::string_view more = mark.substr(close + 1);
    if (!more.empty() && !more.starts_with("  ")) continue;
    node.reason = Bounded(Said(value.substr(0, open)));
    if (!Said(more).empty()) node.reason = Bounded(node.reason + " " + std::string(Said(more)));
    node.reason_by = Bounded(Said(mark.substr(0, at)));
    node.reason_since = ReadTime(mark.substr(at + 1, close - at - 1));
    return;
  }
  node.reason = Bounded(Said(value));
}

// What scontrol has printed since 22.05, in the order of the search. The names that are not kept
// stand here as well: where the next one begins, a value ends.
constexpr Key<SlurmNode> kKeys[] = {
    {"ActiveFeatures", Zone::kFact, nullptr},
    {"AllocMem", Zone::kFact, SetMemory<&SlurmNode::memory_allocated_bytes>},
    {"AllocTRES", Zone::kFact, nullptr},
    {"Arch", Zone::kFact, nullptr},
    {"AvailableFeatures", Zone::kFact, nullptr},
    {"AveWatts", Zone::kFact, nullptr},
    {"BcastAddr", Zone::kFact, nullptr},
    {"Boards", Zone::kFact, nullptr},
    {"BootTime", Zone::kFact, SetTime<&SlurmNode::boot>},
    {"CPUAlloc", Zone::kFact, SetCount<&SlurmNode::cpus_allocated>},
    {"CPUEfctv", Zone::kFact, nullptr},
    {"CPUErr", Zone::kFact, nullptr},
    {"CPULoad", Zone::kFact, SetLoad},
    {"CPUSpecList", Zone::kFact, nullptr},
    {"CPUTot", Zone::kFact, SetCount<&SlurmNode::cpus>},
    {"CapWatts", Zone::kFact, nullptr},
    {"CertFlags", Zone::kEither, nullptr},
    {"CfgTRES", Zone::kFact, nullptr},
    {"Comment", Zone::kText, nullptr},
    {"ConsumedJoules", Zone::kFact, nullptr},
    {"CoreSpecCount", Zone::kFact, nullptr},
    {"CoresPerSocket", Zone::kFact, nullptr},
    {"CpuBind", Zone::kFact, nullptr},
    {"CurrentWatts", Zone::kFact, nullptr},
    {"ExtSensorsJoules", Zone::kFact, nullptr},
    {"ExtSensorsTemp", Zone::kFact, nullptr},
    {"ExtSensorsWatts", Zone::kFact, nullptr},
    {"Extra", Zone::kText, nullptr},
    {"FreeMem", Zone::kFact, SetMemory<&SlurmNode::memory_free_bytes>},
    {"Gres", Zone::kFact, nullptr},
    {"GresDrain", Zone::kFact, nullptr},
    {"GresUsed", Zone::kFact, nullptr},
    {"InstanceId", Zone::kEither, nullptr},
    {"InstanceType", Zone::kEither, nullptr},
    {"LastBusyTime", Zone::kFact, nullptr},
    {"LowestJoules", Zone::kFact, nullptr},
    {"MCS_label", Zone::kFact, nullptr},
    {"MemSpecLimit", Zone::kFact, nullptr},
    {"NextState", Zone::kFact, nullptr},
    {"NodeAddr", Zone::kFact, nullptr},
    {"NodeHostName", Zone::kFact, nullptr},
    {"NodeName", Zone::kFact, SetText<&SlurmNode::name>},
    {"OS", Zone::kFact, nullptr},
    {"Owner", Zone::kFact, nullptr},
    {"Partitions", Zone::kFact, SetText<&SlurmNode::partitions>},
    {"Port", Zone::kFact, nullptr},
    {"RealMemory", Zone::kFact, SetMemory<&SlurmNode::memory_bytes>},
    {"Reason", Zone::kText, SetReason},
    {"ReservationName", Zone::kEither, nullptr},
    {"RestrictedCoresPerGPU", Zone::kFact, nullptr},
    {"ResumeAfterTime", Zone::kFact, nullptr},
    {"SlurmdStartTime", Zone::kFact, SetTime<&SlurmNode::slurmd_start>},
    {"Sockets", Zone::kFact, nullptr},
    {"State", Zone::kFact, SetNodeState},
    {"ThreadsPerCore", Zone::kFact, nullptr},
    {"TmpDisk", Zone::kFact, nullptr},
    {"Topology", Zone::kEither, nullptr},
    {"Version", Zone::kFact, SetText<&SlurmNode::version>},
    {"Weight", Zone::kFact, nullptr},
};
static_assert(std::is_sorted(std::begin(kKeys), std::end(kKeys),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));

}  // namespace

std::span<const Key<SlurmNode>> NodeKeys() {
  return kKeys;
}

}  // namespace rankscope::exporter::slurm
