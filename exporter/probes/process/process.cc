// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/process/process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "exporter/processes/proc_owner.h"

namespace rankscope::probes {
namespace {

using collectors::ProcessFacts;
using collectors::TrackedProcess;

constexpr Duration kFactsDeadline = Seconds(5);

std::string Text(const char* chars, size_t room) {
  return {chars, strnlen(chars, room)};
}

// An event as its struct; null where it is too short for one.
template <typename T>
const T* As(std::span<const std::byte> bytes, size_t least = sizeof(T)) {
  return bytes.size() >= least ? reinterpret_cast<const T*>(bytes.data()) : nullptr;
}

Timestamp TimeOf(const rs_header& header) {
  return {static_cast<int64_t>(header.time_ns)};
}

}  // namespace

std::string CgroupPath(const rs_cgroup& cgroup, uint32_t from_level) {
  std::string path = cgroup.cut != 0 ? "/..." : "";
  const uint32_t names = std::min<uint32_t>(cgroup.names, RS_CGROUP_LEVELS);
  for (uint32_t i = names; i > from_level; --i) {
    path += '/' + Text(cgroup.name[i - 1], RS_CGROUP_NAME);
  }
  return path.empty() ? "/" : path;
}

ProcessFacts FactsOf(const rs_exec& exec, KeepKey keep) {
  ProcessFacts facts;
  ProcessStart& start = facts.start;
  start.key = KeyOf(exec.process.pid, exec.process.start_ns);
  if (exec.parent.pid != 0) start.parent = KeyOf(exec.parent.pid, exec.parent.start_ns);
  start.uid = exec.process.uid;
  start.comm = Text(exec.process.comm, RS_COMM);
  start.argv = collectors::ParseArguments({exec.data, exec.arguments});
  facts.environment =
      collectors::ParseEnvironment({exec.data + exec.arguments, exec.environment}, keep);
  start.env = std::move(facts.environment.kept);
  start.ns_pids = {start.key.pid};
  if (exec.inner_pid > 0) start.ns_pids.push_back(exec.inner_pid);
  start.cgroup = CgroupPath(exec.cgroup);
  facts.owner = attribution::ReadCgroup(start.cgroup);
  if (exec.cgroup.v1 == RS_CGROUP_MEMORY) facts.cgroup.memory = start.cgroup;
  if (exec.cgroup.v1 == RS_CGROUP_UNIFIED) facts.cgroup.unified = start.cgroup;
  start.complete = (exec.cut & 2) == 0;
  return facts;
}

Process::Process(collectors::ProcReader reader, KeepKey keep,
                 std::shared_ptr<collectors::ProcessTable> table,
                 std::shared_ptr<TrackedMap> tracked, bool force)
    : ProbeSource("process", std::move(table), std::move(tracked), force),
      reader_(std::move(reader)),
      keep_(keep) {}

Process::~Process() {
  Stop();
}

Status Process::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<int> tracked = Admit(sink, ObstacleForTracepoints(LookAtKernel()));
  if (!tracked) return Error{tracked.error()};
  auto loaded =
      ProcessPrograms::Load(*tracked, [this](std::span<const std::byte> event) { OnEvent(event); });
  if (Status adopted = Adopt(loop, std::move(loaded), programs_, [this] { programs_->Consume(); });
      !adopted)
    return adopted;
  worker_ = std::make_unique<exporter::Worker>(loop);
  oom_log_.Open();  // without it the limit that the victim stands at tells the scope
  tracked_->Resync();
  tracked_->set_on_catch_up([this] { programs_->Consume(); });
  table_->set_exits_told(this, true);
  return {};
}

void Process::Stop() {
  if (loop_ == nullptr) return;
  table_->set_exits_told(this, false);
  tracked_->set_on_catch_up({});
  loop_->Unwatch(programs_->fd());
  worker_.reset();
  lost_before_ = lost() - malformed_;
  programs_.reset();
  oom_log_.Close();
  kernel_kills_.clear();
  awaited_.clear();
  loop_ = nullptr;
}

int64_t Process::lost() const {
  const Losses losses = programs_ ? programs_->losses() : Losses{};
  return lost_before_ + losses.events + losses.processes + malformed_;
}

void Process::OnEvent(std::span<const std::byte> bytes) {
  const auto* header = As<rs_header>(bytes);
  if (header == nullptr) {
    ++malformed_;
    return;
  }
  switch (header->kind) {
    case RS_FORK:
      if (const auto* event = As<rs_fork>(bytes)) return OnFork(*event);
      break;
    case RS_EXEC: {
      constexpr size_t kFixed = offsetof(rs_exec, data);
      const auto* event = As<rs_exec>(bytes, kFixed);
      if (event == nullptr || event->arguments > RS_ARGUMENTS ||
          event->environment > RS_ENVIRONMENT ||
          bytes.size() < kFixed + event->arguments + event->environment) {
        break;
      }
      return OnExec(*event);
    }
    case RS_EXIT:
      if (const auto* event = As<rs_exit>(bytes)) return OnExit(*event);
      break;
    case RS_SIGNAL:
      if (const auto* event = As<rs_signal>(bytes)) return OnSignal(*event);
      break;
    case RS_OOM:
      if (const auto* event = As<rs_oom>(bytes)) return OnOom(*event);
      break;
    default:
      break;
  }
  ++malformed_;
}

void Process::OnFork(const rs_fork& event) {
  const TrackedProcess* const parent = table_->Find(static_cast<int32_t>(event.parent.pid));
  if (parent == nullptr || parent->key != KeyOf(event.parent.pid, event.parent.start_ns)) {
    tracked_->Untrack(KeyOf(event.child.pid, event.child.start_ns));
    return;
  }
  TrackedProcess child = *parent;
  child.parent = parent->key;
  child.key = KeyOf(event.child.pid, event.child.start_ns);
  child.missing = false;
  ProcessStart start;
  start.key = child.key;
  start.parent = child.parent;
  start.uid = event.child.uid;
  start.comm = Text(event.child.comm, RS_COMM);
  start.job_id = child.job_id;
  if (table_->Add(std::move(child))) Tell(std::move(start), TimeOf(event.header));
}

void Process::OnExec(const rs_exec& event) {
  if (static_cast<pid_t>(event.process.pid) == getpid()) return;
  // An environment that did not fit says nothing about what it does not hold.
  if ((event.cut & 2) != 0) {
    ReadFacts(KeyOf(event.process.pid, event.process.start_ns));
    return;
  }
  ProcessFacts facts = FactsOf(event, keep_);
  facts.start.cgroup = reader_.sluids().WithJobId(facts.start.cgroup);
  facts.owner = attribution::ReadCgroup(facts.start.cgroup);
  OnFacts(std::move(facts), TimeOf(event.header));
}

void Process::ReadFacts(const ProcessKey& key) {
  const bool submitted = worker_->Submit(
      [this, reader = reader_, key]() -> std::function<void()> {
        const auto stat = reader.Stat(key.pid);
        std::optional<ProcessFacts> facts;
        if (stat && stat->start_ticks == key.start_ticks) facts = reader.Facts(*stat);
        return [this, key, facts = std::move(facts)]() mutable {
          const auto awaited = awaited_.extract(key);
          if (facts && !table_->HasEnded(key)) OnFacts(std::move(*facts), {});
          if (!awaited.empty() && awaited.mapped()) OnExit(*awaited.mapped());
        };
      },
      kFactsDeadline, {});
  if (submitted) {
    awaited_[key];
  } else {
    table_->AskFacts(key);  // the scan reads them
  }
}

void Process::OnFacts(ProcessFacts facts, Timestamp t) {
  const ProcessKey key = facts.start.key;
  TrackedProcess* tracked = table_->Find(key.pid);
  if (tracked != nullptr && tracked->key != key) {
    table_->Remove(tracked->key);  // its end was lost
    tracked_->Track(key.pid);
    tracked = nullptr;
  }
  if (tracked == nullptr && !collectors::BelongsToAJob(facts)) {
    tracked_->Untrack(key);
    return;
  }
  const TrackedProcess before = tracked == nullptr ? TrackedProcess() : *tracked;
  if (!table_->Add(collectors::WithFacts(before, facts))) return;
  facts.start.job_id = collectors::JobKnown(before, facts);
  Tell(std::move(facts.start), t);
}

void Process::OnExit(const rs_exit& event) {
  const ProcessKey key = KeyOf(event.pid, event.start_ns);
  kernel_kills_.erase(key.pid);
  const TrackedProcess* const tracked = table_->Find(key.pid);
  if (tracked == nullptr || tracked->key != key) {
    if (const auto awaited = awaited_.find(key); awaited != awaited_.end()) awaited->second = event;
    return;
  }
  ProcessExit exit;
  exit.key = key;
  exit.wait_status = event.wait_status;
  exit.status_known = true;
  exit.core = WCOREDUMP(event.wait_status);
  table_->Remove(key);
  Tell(exit, TimeOf(event.header));
}

void Process::OnSignal(const rs_signal& event) {
  const ProcessKey target = KeyOf(event.target_pid, event.target_start_ns);
  const TrackedProcess* const tracked = table_->Find(target.pid);
  if (tracked == nullptr || tracked->key != target) return;
  SignalSent sent;
  sent.target = target;
  sent.signo = event.signo;
  sent.si_code = event.si_code;
  if (event.sender.pid != 0) {
    sent.sender = KeyOf(event.sender.pid, event.sender.start_ns);
    sent.sender_comm = Text(event.sender.comm, RS_COMM);
    sent.sender_uid = event.sender.uid;
    sent.sender_cgroup = CgroupPath(event.cgroup);
  } else if (event.signo == SIGKILL && kernel_kills_.size() < kMaxKernelKills) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    KernelKill kill;
    kill.target = target;
    kill.limit_bytes = static_cast<int64_t>(event.limit_pages) * page;
    kill.used_bytes = static_cast<int64_t>(event.used_pages) * page;
    kill.v1 = event.cgroup.v1 != RS_CGROUP_UNIFIED;
    if (event.limit_pages != 0) kill.limit_owner = CgroupPath(event.cgroup, event.limit_level);
    kernel_kills_[target.pid] = std::move(kill);
  }
  Tell(std::move(sent), TimeOf(event.header));
}

void Process::OnOom(const rs_oom& event) {
  const TrackedProcess* const tracked = table_->Find(static_cast<int32_t>(event.pid));
  if (tracked == nullptr) return;
  if (event.start_ns != 0 && tracked->key != KeyOf(event.pid, event.start_ns)) return;
  KernelEvent killed;
  killed.type = KernelEventType::kOomKill;
  killed.victim = tracked->key;
  bool v1 = tracked->memory_is_v1;
  if (const auto kill = kernel_kills_.find(tracked->key.pid); kill != kernel_kills_.end()) {
    killed.cgroup = kill->second.limit_owner;
    killed.limit_bytes = kill->second.limit_bytes;
    killed.used_bytes = kill->second.used_bytes;
    if (killed.limit_bytes > 0) killed.scope = "cgroup";
    v1 = kill->second.v1;
    kernel_kills_.erase(kill);
  }
  if (const auto line = oom_log_.Find(tracked->key.pid)) {
    killed.text = line->text;
    killed.kmsg_seq = line->sequence;
    killed.scope = line->scope;
    if (line->scope != "cgroup") {
      // Whoever stands at a limit of its own while the whole machine runs out is killed for that.
      killed.cgroup.clear();
      killed.limit_bytes = killed.used_bytes = 0;
    } else if (killed.cgroup != line->limit_owner) {
      killed.cgroup = line->limit_owner;
      killed.limit_bytes = reader_.Memory(line->limit_owner, v1).limit_bytes.value_or(0);
      killed.used_bytes = 0;
    }
  }
  Tell(std::move(killed), TimeOf(event.header));
}

}  // namespace rankscope::probes
