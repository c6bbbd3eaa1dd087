// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/node_reason.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>

#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kMaxReason = 1024;  // of which a person has typed a line

constexpr std::array kReasons = {
    NodeReason::kNone,         NodeReason::kNotResponding, NodeReason::kRebooted,
    NodeReason::kPrologEpilog, NodeReason::kKillTask,      NodeReason::kMemory,
    NodeReason::kGpu,          NodeReason::kNetwork,       NodeReason::kHardware,
    NodeReason::kHealthCheck,  NodeReason::kOperator,      NodeReason::kOther,
};

struct ReasonRow {
  std::string_view text;
  NodeReason reason;
};

// What slurmctld and slurmd write (22.05 to 25.11). Each begins a part of the reason, and a part
// ends at " : " or ", ": Slurm appends to what stands there.
constexpr ReasonRow kOwnWords[] = {
    {"not responding", NodeReason::kNotResponding},
    {"resumetimeout reached", NodeReason::kNotResponding},
    {"reboot timed out", NodeReason::kNotResponding},
    {"node unexpectedly rebooted", NodeReason::kRebooted},
    {"prolog error", NodeReason::kPrologEpilog},
    {"epilog error", NodeReason::kPrologEpilog},
    {"prolog/epilog failure", NodeReason::kPrologEpilog},
    {"kill task failed", NodeReason::kKillTask},
    {"step did not terminate", NodeReason::kKillTask},
    {"low realmemory", NodeReason::kMemory},
    {"low tmpdisk", NodeReason::kHardware},
    {"low cpus", NodeReason::kHardware},
    {"low socket*core*thread count", NodeReason::kHardware},
    {"gres/gpu count reported lower than configured", NodeReason::kGpu},
    {"gres/gpu count too low", NodeReason::kGpu},
    {"no network address found", NodeReason::kNetwork},
    {"reboot requested", NodeReason::kOperator},
    {"reboot asap", NodeReason::kOperator},
    {"reboot issued", NodeReason::kOperator},
    {"reboot complete", NodeReason::kOperator},
    {"duplicate jobid", NodeReason::kOther},
    {"batch job complete failure", NodeReason::kOther},
};

// Whole words of what people and health checks write; the first that occurs, in this order.
constexpr ReasonRow kParts[] = {
    {"gpu", NodeReason::kGpu},
    {"gpus", NodeReason::kGpu},
    {"xid", NodeReason::kGpu},
    {"nvlink", NodeReason::kGpu},
    {"nvswitch", NodeReason::kGpu},
    {"fabricmanager", NodeReason::kGpu},
    {"nvidia", NodeReason::kGpu},
    {"nvidia-smi", NodeReason::kGpu},
    {"nvml", NodeReason::kGpu},
    {"dcgm", NodeReason::kGpu},
    {"cuda", NodeReason::kGpu},
    {"fell off the bus", NodeReason::kGpu},
    {"row remapping", NodeReason::kGpu},
    {"infiniband", NodeReason::kNetwork},
    {"ib", NodeReason::kNetwork},
    {"hca", NodeReason::kNetwork},
    {"nic", NodeReason::kNetwork},
    {"ethernet", NodeReason::kNetwork},
    {"network", NodeReason::kNetwork},
    {"roce", NodeReason::kNetwork},
    {"link flap", NodeReason::kNetwork},
    {"link down", NodeReason::kNetwork},
    {"switch port", NodeReason::kNetwork},
    {"cable", NodeReason::kNetwork},
    {"memory", NodeReason::kMemory},
    {"dimm", NodeReason::kMemory},
    {"edac", NodeReason::kMemory},
    {"oom", NodeReason::kMemory},
    {"out of memory", NodeReason::kMemory},
    {"hardware", NodeReason::kHardware},
    {"ecc", NodeReason::kHardware},
    {"mce", NodeReason::kHardware},
    {"cpu", NodeReason::kHardware},
    {"disk", NodeReason::kHardware},
    {"nvme", NodeReason::kHardware},
    {"ssd", NodeReason::kHardware},
    {"pcie", NodeReason::kHardware},
    {"psu", NodeReason::kHardware},
    {"fan", NodeReason::kHardware},
    {"power supply", NodeReason::kHardware},
    {"temperature", NodeReason::kHardware},
    {"overheating", NodeReason::kHardware},
    {"motherboard", NodeReason::kHardware},
    {"bmc", NodeReason::kHardware},
    {"hardware_problem", NodeReason::kHardware},
    {"nhc", NodeReason::kHealthCheck},
    {"hc", NodeReason::kHealthCheck},
    {"health check", NodeReason::kHealthCheck},
    {"healthcheck", NodeReason::kHealthCheck},
    {"health_check", NodeReason::kHealthCheck},
    {"node_problem", NodeReason::kHealthCheck},
    {"user_problem", NodeReason::kOperator},
    {"maint", NodeReason::kOperator},
    {"maintenance", NodeReason::kOperator},
    {"upgrade", NodeReason::kOperator},
    {"reboot", NodeReason::kOperator},
    {"reinstall", NodeReason::kOperator},
    {"rma", NodeReason::kHardware},
    {"reserved", NodeReason::kOperator},
    {"requested", NodeReason::kOperator},
    {"test", NodeReason::kOperator},
    {"testing", NodeReason::kOperator},
    {"ticket", NodeReason::kOperator},
};

constexpr std::array<std::string_view, 12> kNames = {
    "none", "not_responding", "rebooted", "prolog_epilog", "kill_task", "memory",
    "gpu",  "network",        "hardware", "health_check",  "operator",  "other",
};

constexpr std::array<std::string_view, 7> kConditions = {
    "unknown", "up", "down", "failed", "draining", "drained", "maintenance",
};

struct FlagRow {
  std::string_view word;  // of the base state, or a flag
  NodeCondition condition;
};
// The worst first.
constexpr FlagRow kConditionsOfWords[] = {
    {"DOWN", NodeCondition::kDown},         {"ERROR", NodeCondition::kDown},
    {"FAIL", NodeCondition::kFailed},       {"FAILING", NodeCondition::kFailed},
    {"DRAINING", NodeCondition::kDraining}, {"DRAINED", NodeCondition::kDrained},
    {"DRAIN", NodeCondition::kDrained},     {"MAINTENANCE", NodeCondition::kMaintenance},
    {"MAINT", NodeCondition::kMaintenance}, {"REBOOT_ISSUED", NodeCondition::kMaintenance},
    {"IDLE", NodeCondition::kUp},           {"ALLOCATED", NodeCondition::kUp},
    {"MIXED", NodeCondition::kUp},
};

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string Lower(std::string_view text) {
  std::string lower(text.substr(0, kMaxReason));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

// Not within a word: "gpuuser" names no GPU. A number may follow: "gpu3", "nic0".
bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const bool begins = at == 0 || !IsWordByte(text[at - 1]);
    if (begins && (end == text.size() || !IsWordByte(text[end]))) return true;
  }
  return false;
}

// Slurm's words with nothing behind them, or a bracket with numbers.
bool IsOwnWord(std::string_view part, std::string_view own) {
  if (!part.starts_with(own)) return false;
  const std::string_view rest = Said(part.substr(own.size()));
  return rest.empty() || rest.front() == '(' || rest.front() == '[' || rest.front() == ':' ||
         rest.front() == ',' || rest.front() == ';';
}

bool Has(const SlurmNode& node, std::string_view word) {
  return node.state == word || std::find(node.state_flags.begin(), node.state_flags.end(), word) !=
                                   node.state_flags.end();
}

}  // namespace

std::string_view NodeReasonName(NodeReason reason) {
  return kNames[static_cast<size_t>(reason)];
}

std::span<const NodeReason> NodeReasons() {
  return kReasons;
}

NodeReason ClassifyReason(std::string_view reason) {
  reason = Said(reason);
  if (reason.empty()) return NodeReason::kNone;
  const std::string text = Lower(reason);
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find_first_of(":,;", begin), text.size());
    const std::string_view part = Said(std::string_view(text).substr(begin));
    const auto* own = std::find_if(std::begin(kOwnWords), std::end(kOwnWords),
                                   [&](const ReasonRow& row) { return IsOwnWord(part, row.text); });
    if (own != std::end(kOwnWords)) return own->reason;
    begin = end + 1;
  }
  const auto* part = std::find_if(std::begin(kParts), std::end(kParts),
                                  [&](const ReasonRow& row) { return HasWord(text, row.text); });
  return part != std::end(kParts) ? part->reason : NodeReason::kOther;
}

std::string_view NodeConditionName(NodeCondition condition) {
  return kConditions[static_cast<size_t>(condition)];
}

NodeCondition ConditionOf(const SlurmNode& node) {
  const auto* row =
      std::find_if(std::begin(kConditionsOfWords), std::end(kConditionsOfWords),
                   [&](const FlagRow& candidate) { return Has(node, candidate.word); });
  if (row == std::end(kConditionsOfWords)) return NodeCondition::kUnknown;
  // Slurm has one flag for both.
  const bool busy = Has(node, "ALLOCATED") || Has(node, "MIXED") || Has(node, "COMPLETING");
  if (row->word == "DRAIN" && busy) return NodeCondition::kDraining;
  return row->condition;
}

}  // namespace rankscope::exporter::slurm
