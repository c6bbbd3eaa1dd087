// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_events.h"

#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include "detectors/model/pci_card.h"

namespace rankscope::collectors::nvml {
namespace {

constexpr Duration kAgain = Seconds(30);
// What a process holds changes with each step; so much is worth an event.
constexpr double kBytes = 256 << 20;

std::string_view NameOf(GpuState state) {
  switch (state) {
    case GpuState::kUp:
      return "up";
    case GpuState::kUnresponsive:
      return "unresponsive";
    case GpuState::kLost:
      return "lost";
    case GpuState::kDenied:
      return "denied";
    default:
      return "failed";
  }
}

// Empty for a process that has just ended, or is of another pid namespace.
std::string NameOfProcess(int32_t pid) {
  std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(comm, name);
  return name;
}

bool IsToldOfProcesses(const GpuStatus& gpu) {
  return gpu.state == GpuState::kUp && gpu.reading.compute_processes.has_value();
}

}  // namespace

Event Events::OfCard(EventType type, const GpuStatus& gpu) const {
  Event event;
  event.type = WireType(type);
  event.str = {{"gpu_uuid", gpu.identity.uuid},
               {"bus_id", PciCard(gpu.identity.bus_id)},
               {"model", gpu.identity.model},
               {"state", std::string(NameOf(gpu.state))}};
  event.num = {{"index", gpu.identity.index},
               {"processes_told", IsToldOfProcesses(gpu) ? 1 : 0},
               {"mig", gpu.reading.mig_enabled == 1 ? 1 : 0}};
  if (gpu.identity.minor >= 0) event.num.push_back({"minor", gpu.identity.minor});
  if (gpu.reading.pcie_width && gpu.reading.pcie_width_max) {
    event.num.push_back({"pcie_width", static_cast<int64_t>(*gpu.reading.pcie_width)});
    event.num.push_back({"pcie_width_max", static_cast<int64_t>(*gpu.reading.pcie_width_max)});
  }
  if (xid_ != 0) {
    event.num.push_back({"xid", xid_});
    event.num.push_back({"xid_ns", xid_since_.ns});
  }
  return event;
}

// With the GPU's own facts: a run that has just begun has heard nothing of it yet.
Event Events::OfHolder(const GpuStatus& gpu, const ProcessKey& key) const {
  Event event = OfCard(EventType::kGpuProcess, gpu);
  event.process = key;
  return event;
}

std::vector<Event> Events::Of(const GpuStatus& gpu, const XidPending& pending, ProcessTable& table,
                              Timestamp now) {
  std::vector<Event> out;
  if (gpu.identity.uuid.empty()) return out;
  if (xid_ != pending.code || xid_since_ != pending.since) known_ = false;
  xid_ = pending.code;
  xid_since_ = pending.since;
  TellIdentity(gpu, table.begun(), now, out);
  if (IsToldOfProcesses(gpu)) TellHolders(gpu, table, now, out);
  return out;
}

void Events::TellIdentity(const GpuStatus& gpu, int64_t begun, Timestamp now,
                          std::vector<Event>& out) {
  Event event = OfCard(EventType::kGpuIdentity, gpu);
  if (known_ && identity_ == gpu.identity && state_ == gpu.state && facts_ == event.num &&
      begun_ == begun && now - identity_told_ < kAgain)
    return;
  known_ = true;
  identity_ = gpu.identity;
  state_ = gpu.state;
  facts_ = event.num;
  begun_ = begun;
  identity_told_ = now;
  out.push_back(std::move(event));
}

void Events::TellHolders(const GpuStatus& gpu, ProcessTable& table, Timestamp now,
                         std::vector<Event>& out) {
  const auto leave = [&](const Holder& holder) {
    Event event = OfHolder(gpu, holder.key);
    event.num.push_back({"gone", 1});
    out.push_back(std::move(event));
  };
  std::map<int32_t, double> now_holding;  // a process of several MIG instances stands there twice
  for (const GpuProcess& process : *gpu.reading.compute_processes)
    now_holding[process.pid] += process.memory_bytes.value_or(0);
  for (auto it = holders_.begin(); it != holders_.end();) {
    if (now_holding.contains(it->first)) {
      ++it;
      continue;
    }
    leave(it->second);
    it = holders_.erase(it);
  }
  for (const auto& [pid, bytes] : now_holding) {
    const TrackedProcess* const tracked = table.Find(pid);
    const ProcessKey key = tracked != nullptr ? tracked->key : ProcessKey{pid, 0};
    const auto [found, first] = holders_.try_emplace(pid);
    Holder& holder = found->second;
    const bool other = !first && holder.key != key;
    if (other) leave(holder);  // its pid was used again, or it has become a run's
    if (first || other) holder.name = NameOfProcess(pid);
    if (!first && !other && std::abs(bytes - holder.bytes) < kBytes && now - holder.told < kAgain)
      continue;
    holder.key = key;
    holder.bytes = bytes;
    holder.told = now;
    Event event = OfHolder(gpu, key);
    event.str.push_back({"name", holder.name});
    event.num.push_back({"bytes", static_cast<int64_t>(bytes)});
    out.push_back(std::move(event));
  }
}

}  // namespace rankscope::collectors::nvml
