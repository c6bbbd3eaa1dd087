// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/nccl.h"

#include <array>
#include <set>
#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/probes/calls/call_maps.h"
#include "exporter/probes/calls/nccl_numbers.h"

namespace rankscope::probes {
namespace {

// As the maps hold.
constexpr size_t kMaxCommunicators = 4096;
constexpr size_t kMaxAsked = 8192;

// Entry and return, at an emulated instruction; bench/probe_bench.
constexpr double kCallSeconds = 1.5e-6;

// Communicators of a process that may make calls which no probe sees.
constexpr double kNotKnown = -1;
// Said again: who listens may not have known the process then.
constexpr int64_t kUnknownAgainNs = 10'000'000'000;

struct Kind {
  rs_call_kind kind;
  EventType type;
  const char* what;  // null: the event has no such field
};
constexpr std::array kKinds = {
    Kind{RS_CALL_FAILED, EventType::kNcclCallFailed, nullptr},
    Kind{RS_CALL_INIT, EventType::kCommunicatorInit, "begun"},
    Kind{RS_CALL_CREATED, EventType::kCommunicator, "created"},
    Kind{RS_CALL_NOT_CREATED, EventType::kCommunicator, "failed"},
    Kind{RS_CALL_DESTROYED, EventType::kCommunicator, "destroyed"},
    Kind{RS_CALL_ABORTED, EventType::kCommunicator, "aborted"},
};

// A pointer tells where things lie in a process's memory: only its hash leaves.
int64_t HashOf(uint64_t pointer) {
  pointer ^= pointer >> 33;
  pointer *= 0xff51afd7ed558ccdull;
  pointer ^= pointer >> 33;
  return static_cast<int64_t>(pointer >> 16);
}

// Entries of one process.
template <typename V>
std::vector<V> ReadOf(int map, const ProcessKey& process, size_t most) {
  std::vector<V> values;
  for (const rs_handle& key : ReadKeys<rs_handle>(map, most)) {
    if (key.pid != static_cast<uint32_t>(process.pid)) continue;
    if (const auto value = ReadEntry<rs_handle, V>(map, key)) values.push_back(*value);
  }
  return values;
}

void Erase(int map, const ProcessKey& process, size_t most) {
  for (const rs_handle& key : ReadKeys<rs_handle>(map, most)) {
    if (key.pid == static_cast<uint32_t>(process.pid)) bpf_map_delete_elem(map, &key);
  }
}

}  // namespace

Nccl::Nccl(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
           bool force)
    : Calls(CallObjectKind::kNccl, "nccl", NcclCalls(), std::move(processes), std::move(tracked),
            force) {}

Nccl::~Nccl() {
  Stop();
}

void Nccl::Report(const ProcessKey& process, int64_t now_ns, bool gone) {
  const auto counts =
      ReadEntry<uint32_t, rs_nccl_counts>(object()->counts(), static_cast<uint32_t>(process.pid));
  if (!counts && gone) return;
  NcclView view;
  if (counts) {
    view.counts = *counts;
    total_calls_ += counts->calls - std::exchange(calls_[process], counts->calls);
    view.communicators =
        ReadOf<rs_communicator>(object()->communicators(), process, kMaxCommunicators);
    view.asked = ReadOf<rs_asked>(object()->asked(), process, kMaxAsked);
  }
  const auto lives = [&process](uint32_t thread) { return ThreadLives(process.pid, thread); };
  TellSamples(process, NcclSamples(view, now_ns, lives), "rankscope_collectives_enqueued_total");
}

void Nccl::OnCall(const ProcessKey& process, const rs_call& call) {
  for (const Kind& row : kKinds) {
    if (call.header.kind != row.kind) continue;
    Event event;
    event.process = process;
    event.type = WireType(row.type);
    if (row.what != nullptr) {
      event.str.push_back({"what", row.what});
      event.num.push_back({"id", call.pointer != 0 ? HashOf(call.pointer) : 0});
      event.num.push_back({"rank", call.rank});
      event.num.push_back({"nranks", call.ranks});
      event.num.push_back({"seconds", static_cast<int64_t>(call.took_ns / 1'000'000'000)});
    }
    event.str.push_back({"call", FunctionName(call.function)});
    event.num.push_back({"result", call.result});
    TellEvent(std::move(event), static_cast<int64_t>(call.header.time_ns));
  }
}

// They are some thousands a second at most: what they cost is bounded by that, and is not governed.
std::vector<exporter::ProbeUse> Nccl::probes() const {
  if (attacher() == nullptr) return {};
  exporter::ProbeUse use = UseOf("call", total_calls_, kCallSeconds, 1);
  std::set<SiteClass> sites;
  for (const PlacedProbe& placed : attacher()->state().placed) sites.insert(placed.site);
  for (const SiteClass site : sites) use.sites.emplace_back(SiteClassName(site));
  return {use};
}

void Nccl::OnSecond(int64_t now_ns) {
  std::erase_if(told_unknown_, [this](const auto& told) { return !IsUnprobed(told.first); });
  for (const ProcessKey& process : attacher()->state().unprobed) {
    if (!Lives(process)) continue;
    const auto [told, first] = told_unknown_.try_emplace(process, now_ns);
    if (!first && now_ns - told->second < kUnknownAgainNs) continue;
    told->second = now_ns;
    TellSamples(process, {{SignalId::kCommunicators, kNotKnown}}, "rankscope_source_up");
  }
}

void Nccl::Forget(const ProcessKey& process) {
  calls_.erase(process);
  Erase(object()->communicators(), process, kMaxCommunicators);
  Erase(object()->asked(), process, kMaxAsked);
}

}  // namespace rankscope::probes
