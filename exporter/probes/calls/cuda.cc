// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/cuda.h"

#include <set>
#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/probes/calls/call_maps.h"

namespace rankscope::probes {
namespace {

constexpr size_t kMaxCallers = 1024;  // as the map holds
// What does not change is said again: who listens may not have known the process then.
constexpr int64_t kUseAgainNs = 10'000'000'000;
// Of a process that may make calls which no probe sees.
constexpr double kNotKnown = -1;

}  // namespace

Cuda::Cuda(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
           bool force, double budget)
    : Calls(CallObjectKind::kCuda, "cuda", CudaCalls(), std::move(processes), std::move(tracked),
            force),
      budget_(budget) {}

Cuda::~Cuda() {
  Cuda::Stop();
}

void Cuda::Stop() {
  windows_.reset();
  Calls::Stop();
  callers_.clear();
  uses_.clear();
}

CallerRuns Cuda::ReadRuns() const {
  CallerRuns runs;
  for (const uint32_t pid : ReadKeys<uint32_t>(object()->counts(), kMaxCallers)) {
    const auto counts = ReadEntry<uint32_t, rs_cuda_counts>(object()->counts(), pid);
    if (counts) runs[pid] = RunsOf(*counts);
  }
  return runs;
}

// Of every process, too, that has nothing to do with CUDA, once it was looked at: a rank among them
// may wait for a device, or train without one.
void Cuda::TellUses(int64_t now_ns) {
  const CallAttacher::State& state = attacher()->state();
  const auto tell = [&](const ProcessKey& process, double use) {
    if (!Lives(process)) return;
    const auto [known, first] = uses_.try_emplace(process);
    if (!first && known->second.told == use && now_ns - known->second.at_ns < kUseAgainNs) return;
    known->second = {use, now_ns};
    TellSamples(process, {{SignalId::kCudaUse, use}}, "rankscope_cuda_attached");
  };
  for (const ProcessKey& process : state.looked) {
    const auto caller = callers_.find(process);
    const bool worked = caller != callers_.end() && caller->second.worked;
    tell(process, worked ? 2 : state.users.contains(process) ? 1 : 0);
  }
  for (const ProcessKey& process : state.unprobed) tell(process, kNotKnown);
}

void Cuda::OnSecond(int64_t now_ns) {
  if (!windows_) {
    windows_ = std::make_unique<LaunchWindows>(*loop(), *attacher(), budget_,
                                               [this] { return ReadRuns(); });
  }
  windows_->OnSecond(now_ns);
  TellUses(now_ns);
}

void Cuda::OnAttached() {
  if (windows_) windows_->OnAttached(loop()->Now().ns);
}

std::string Cuda::Shortcoming() const {
  if (!windows_) return {};
  if (!windows_->plan().times_all()) {
    return "not all synchronizations, copies and allocations are timed: the cost would exceed "
           "ebpf.budget";
  }
  if (windows_->plan().share >= 1) return {};
  return "launches are counted only part of the time: the cost of counting all would exceed "
         "ebpf.budget";
}

void Cuda::Note(Caller& caller, const rs_cuda_counts& counts) {
  const ProbeRuns now = RunsOf(counts);
  total_.driver += now.driver - caller.runs.driver;
  total_.runtime += now.runtime - caller.runs.runtime;
  total_.returns += now.returns - caller.runs.returns;
  total_.calls += now.calls - caller.runs.calls;
  total_.stepped_calls += now.stepped_calls - caller.runs.stepped_calls;
  caller.runs = now;
  caller.worked = CudaNumbers::HasWorked(counts);
}

void Cuda::Report(const ProcessKey& process, int64_t now_ns, bool gone) {
  const auto counts =
      ReadEntry<uint32_t, rs_cuda_counts>(object()->counts(), static_cast<uint32_t>(process.pid));
  if (!counts && gone) return;
  Caller& caller = callers_[process];
  const rs_cuda_counts known = counts.value_or(rs_cuda_counts{});
  if (counts) Note(caller, known);
  const auto lives = [&process](uint32_t thread) { return ThreadLives(process.pid, thread); };
  const LaunchWatch watch = windows_ ? windows_->watch() : LaunchWatch{};
  TellSamples(process, caller.numbers.Take(known, now_ns, watch, lives),
              "rankscope_kernel_launches_total");
}

std::vector<exporter::ProbeUse> Cuda::probes() const {
  const CallAttacher* const attached = attacher();
  if (attached == nullptr || !windows_) return {};
  const ProbeCosts costs = windows_->costs();
  const LaunchPlan& plan = windows_->plan();
  std::vector<exporter::ProbeUse> uses = {
      UseOf("launch_driver", total_.driver, costs.driver, plan.share),
      UseOf("launch_runtime", total_.runtime, costs.runtime, plan.runtime ? plan.share : 0),
      UseOf("launch_return", total_.returns, costs.launch_return, windows_->returns_share()),
      UseOf("call", total_.calls, costs.call, plan.calls ? 1 : 0),
      UseOf("call_single_step", total_.stepped_calls, costs.stepped_call,
            plan.stepped_calls ? 1 : 0),
  };
  std::set<std::pair<size_t, SiteClass>> sites;
  for (const PlacedProbe& placed : attached->state().placed) {
    const size_t layer = placed.layer != 0 ? 1 : 0;
    sites.emplace(placed.launch() ? layer : placed.stepped() ? 4 : 3, placed.site);
    if (placed.launch()) sites.emplace(2, placed.site);
  }
  for (const auto& [use, site] : sites) uses[use].sites.emplace_back(SiteClassName(site));
  return uses;
}

void Cuda::OnCall(const ProcessKey& process, const rs_call& call) {
  Event event;
  event.process = process;
  const bool allocation = call.header.kind == RS_CALL_ALLOCATION;
  event.type = WireType(allocation ? EventType::kAllocationFailed : EventType::kCudaCallFailed);
  event.str.push_back({"call", FunctionName(call.function)});
  if (allocation) {
    // What it does after the refusal is told from what it had done by then.
    Report(process, loop()->Now().ns, false);
    event.num.push_back({"bytes", static_cast<int64_t>(call.bytes)});
  }
  event.num.push_back({"result", call.result});
  TellEvent(std::move(event), static_cast<int64_t>(call.header.time_ns));
}

void Cuda::Forget(const ProcessKey& process) {
  callers_.erase(process);
  uses_.erase(process);
}

}  // namespace rankscope::probes
