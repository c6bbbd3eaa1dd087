// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/calls.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "exporter/probes/calls/call_maps.h"

namespace rankscope::probes {
namespace {

// How soon a library that is loaded late is found.
constexpr Duration kLook = Milliseconds(250);
constexpr int kLooksPerReport = 4;
constexpr size_t kMaxCallers = 1024;  // as the maps hold

}  // namespace

Calls::Calls(CallObjectKind kind, std::string name, std::span<const CallRow> functions,
             std::shared_ptr<collectors::ProcessTable> processes,
             std::shared_ptr<TrackedMap> tracked, bool force)
    : ProbeSource(std::move(name), std::move(processes), std::move(tracked), force),
      kind_(kind),
      functions_(functions) {}

Calls::~Calls() {
  Calls::Stop();
}

Status Calls::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<int> tracked = Admit(sink, ObstacleForUprobes(LookAtKernel()));
  if (!tracked) return Error{tracked.error()};
  const AttachVia via = BestAttach();
  auto loaded = CallObject::Load(kind_, *tracked, via, [this](const rs_call& call) {
    const int32_t pid = static_cast<int32_t>(call.pid);
    const collectors::TrackedProcess* caller = table_->Find(pid);
    if (pid == leaving_.pid) {
      OnCall(leaving_, call);
    } else if (caller != nullptr) {
      OnCall(caller->key, call);
    }
  });
  const auto read = [this] {
    tracked_->CatchUp();
    object_->Consume();
  };
  if (Status adopted = Adopt(loop, std::move(loaded), object_, read); !adopted) return adopted;
  attacher_ = std::make_unique<CallAttacher>(
      loop, "/proc", functions_, CallObject::Programs(object_), via, [this] { OnAttached(); });
  tracked_->set_on_gone(this, [this](const ProcessKey& process) { OnGone(process); });
  looks_ = 0;
  timer_ = loop.Every(kLook, [this] { OnTimer(); });
  OnTimer();
  return {};
}

void Calls::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  tracked_->set_on_gone(this, {});
  loop_->Unwatch(object_->fd());
  lost_before_ = lost();
  attacher_.reset();
  object_.reset();
  loop_ = nullptr;
}

int64_t Calls::lost() const {
  const int64_t files = attacher_ ? attacher_->state().refused_files : 0;
  return lost_before_ + files + (object_ ? object_->lost() : 0);
}

void Calls::OnTimer() {
  const int64_t now_ns = loop_->Now().ns;
  std::vector<CallAttacher::Process> all;
  for (const auto& [pid, process] : table_->processes()) all.push_back({process.key, process.uid});
  attacher_->Look(all);
  if (looks_++ % kLooksPerReport != 0) return;
  OnSecond(now_ns);
  ReportAll(now_ns);
  TellState(Availability::kUp, Reason());
}

std::string Calls::Reason() const {
  if (attacher_->late()) {
    return name_ +
           ": the memory map of a process cannot be read, so its new libraries are not seen";
  }
  const std::string& trouble = attacher_->state().trouble;
  return trouble.empty() ? Shortcoming() : name_ + ": " + trouble;
}

bool Calls::IsUnprobed(const ProcessKey& process) const {
  return attacher_->state().unprobed.contains(process);
}

// Each process that has called, and each that has the library and whose parent has not: children
// forked for other work inherit it.
void Calls::ReportAll(int64_t now_ns) {
  std::set<ProcessKey> callers;
  for (const uint32_t pid : ReadKeys<uint32_t>(object_->counts(), kMaxCallers)) {
    const collectors::TrackedProcess* caller = table_->Find(static_cast<int32_t>(pid));
    if (caller != nullptr) {
      callers.insert(caller->key);
    } else {
      bpf_map_delete_elem(object_->counts(), &pid);
    }
  }
  for (const ProcessKey& user : attacher_->state().users) {
    if (IsOwner(user)) callers.insert(user);
  }
  for (const ProcessKey& caller : callers) {
    if (!IsUnprobed(caller)) Report(caller, now_ns, false);
  }
}

bool Calls::IsOwner(const ProcessKey& process) const {
  return Lives(process) && !attacher_->state().users.contains(table_->Find(process.pid)->parent);
}

void Calls::OnGone(const ProcessKey& process) {
  leaving_ = process;
  object_->Consume();
  leaving_ = {};
  if (!IsUnprobed(process)) Report(process, loop_->Now().ns, true);
  const uint32_t pid = static_cast<uint32_t>(process.pid);
  bpf_map_delete_elem(object_->counts(), &pid);
  Forget(process);
}

bool Calls::ThreadLives(int32_t pid, uint32_t thread) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread);
  return access(path.c_str(), F_OK) == 0;
}

exporter::ProbeUse Calls::UseOf(std::string probe, uint64_t runs, double cost_seconds,
                                double duty_ratio) {
  exporter::ProbeUse use;
  use.probe = std::move(probe);
  use.runs = static_cast<int64_t>(runs);
  use.seconds = static_cast<double>(runs) * cost_seconds;
  use.duty_ratio = duty_ratio;
  return use;
}

std::string Calls::FunctionName(uint32_t function) const {
  return function < functions_.size() ? std::string(functions_[function].symbol) : "?";
}

void Calls::TellSamples(const ProcessKey& process, std::vector<Sample> samples, const char* query) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = process;
  batch.samples = std::move(samples);
  batch.query = query;
  Tell(std::move(batch));
}

void Calls::TellEvent(Event event, int64_t time_ns) {
  Tell(std::move(event), {time_ns});
}

}  // namespace rankscope::probes
