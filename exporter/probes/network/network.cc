// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/network/network.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>

#include "exporter/probes/network/network_facts.h"

namespace rankscope::probes {
namespace {

constexpr Duration kInterval = Milliseconds(500);
// Numbers are told once a second.
constexpr int64_t kLooksPerSecond = 2;
// A connection, or a look-up of a name, that waits as long as this is told while it waits.
constexpr uint64_t kWaitingNs = 3'000'000'000;
// After its start a program has mapped its libraries; a shell's exec of another comes later.
constexpr Duration kExamineAfter[] = {Seconds(1), Seconds(6)};
constexpr Duration kExamineDeadline = Seconds(5);

struct Library {
  std::string device, inode, path;
};

// The C library among the files that a process has mapped.
std::optional<Library> FindCLibrary(int32_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream words(line);
    std::string range, rights, offset;
    Library library;
    words >> range >> rights >> offset >> library.device >> library.inode >> std::ws;
    std::getline(words, library.path);
    const std::string_view name =
        std::string_view(library.path).substr(library.path.rfind('/') + 1);
    if (name == "libc.so.6" || name.starts_with("libc-2.") || name.starts_with("ld-musl-"))
      return library;
  }
  return std::nullopt;
}

SampleBatch Numbers(const ProcessKey& key, const rs_net_process& now) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = key;
  const auto add = [&batch](SignalId signal, uint64_t value) {
    batch.samples.push_back({signal, static_cast<double>(value)});
  };
  add(SignalId::kTcpRetransmits, now.retransmits);
  add(SignalId::kTcpResets, now.resets);
  add(SignalId::kConnectFailures, now.failures);
  add(SignalId::kTcpSentBytes, now.sent_bytes);
  add(SignalId::kTcpReceivedBytes, now.received_bytes);
  return batch;
}

bool Same(const rs_net_process& a, const rs_net_process& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

bool Network::KeyOrder::operator()(const rs_net_key& a, const rs_net_key& b) const {
  return std::memcmp(&a, &b, sizeof a) < 0;
}

Network::Network(std::shared_ptr<collectors::ProcessTable> table,
                 std::shared_ptr<TrackedMap> tracked, bool force)
    : ProbeSource("network", std::move(table), std::move(tracked), force) {}

Network::~Network() {
  Stop();
}

Status Network::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<int> tracked = Admit(sink, ObstacleForTracepoints(LookAtKernel()));
  if (!tracked) return Error{tracked.error()};
  auto loaded =
      NetworkPrograms::Load(*tracked, [this](const rs_net_lookup& lookup) { OnLookup(lookup); });
  if (Status adopted = Adopt(loop, std::move(loaded), programs_, [this] { programs_->Consume(); });
      !adopted)
    return adopted;
  worker_ = std::make_unique<exporter::Worker>(loop);
  libraries_ = std::make_shared<Libraries>();
  timer_ = loop.Every(kInterval, [this] { Look(); });
  if (!programs_->missing().empty())
    TellState(Availability::kUp, "network: cannot attach " + programs_->missing());
  return {};
}

void Network::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  loop_->Unwatch(programs_->fd());
  worker_.reset();
  lost_before_ = lost() - dropped_;
  programs_.reset();
  known_.clear();
  told_.clear();
  names_.clear();
  examined_.clear();
  libraries_.reset();
  loop_ = nullptr;
}

int64_t Network::lost() const {
  return lost_before_ + dropped_ + (programs_ ? programs_->lost() : 0);
}

void Network::Look() {
  tracked_->CatchUp();
  const NetworkCounts counts = programs_->Read();
  for (const auto& [pid, process] : counts.processes) Resolve(pid, process.start_ns);
  TellFacts(counts);
  TellWaiting(counts);
  if (++looks_ % kLooksPerSecond == 0) TellNumbers(counts);
  ForgetEnded(counts);
  ExamineLibraries();
}

std::optional<ProcessKey> Network::Resolve(uint32_t pid, uint64_t start_ns) {
  const ProcessKey key = KeyOf(pid, start_ns);
  if (!IsOurs(key)) return std::nullopt;
  Known& known = known_[pid];
  if (known.key != key) known = {key, {}};
  return key;
}

bool Network::HasNews(const rs_net_key& key, uint64_t times) {
  const auto known = known_.find(key.pid);
  const bool ended = known != known_.end() && table_->HasEnded(known->second.key);
  return told_[key].TakeNews(times, loop_->Now(), ended);
}

void Network::TellFacts(const NetworkCounts& counts) {
  for (const auto& [key, fact] : counts.facts) {
    const auto known = known_.find(key.pid);
    if (known == known_.end() || !HasNews(key, fact.times)) continue;
    // An end of the process that has been told meanwhile comes after it.
    const Timestamp last{static_cast<int64_t>(fact.last_ns)};
    if (auto event = EventOf(key, fact, known->second.key)) Tell(std::move(*event), last);
  }
}

// What waits is told at first and then every five seconds, by the same rule as what is counted.
void Network::TellWaiting(const NetworkCounts& counts) {
  const auto now_ns = static_cast<uint64_t>(loop_->Now().ns);
  for (const rs_net_pending& pending : counts.pending) {
    const auto known = known_.find(pending.key.pid);
    if (known == known_.end() || pending.begin_ns + kWaitingNs > now_ns) continue;
    // The outcome is not known yet: a key that no fact has.
    if (HasNews(pending.key, now_ns)) Tell(EventOf(pending, known->second.key, now_ns));
  }
  for (const rs_net_lookup& lookup : counts.lookups) {
    const auto key = Resolve(lookup.pid, lookup.process_start_ns);
    if (!key || lookup.header.time_ns == 0 || lookup.header.time_ns + kWaitingNs > now_ns) continue;
    rs_net_key waiting{};
    waiting.pid = lookup.pid;
    if (HasNews(waiting, now_ns)) Tell(EventOf(lookup, *key, 1, now_ns));
  }
}

void Network::TellNumbers(const NetworkCounts& counts) {
  for (const auto& [pid, process] : counts.processes) {
    const auto known = known_.find(pid);
    if (known == known_.end() || Same(known->second.last, process)) continue;
    known->second.last = process;
    Tell(Numbers(known->second.key, process));
  }
}

// Who has ended was told of for the last time; candidates that turned out to be strangers go too.
void Network::ForgetEnded(const NetworkCounts& counts) {
  std::set<uint32_t> gone;
  for (const auto& [pid, process] : counts.processes) {
    const collectors::TrackedProcess* const tracked = table_->Find(static_cast<int32_t>(pid));
    if (tracked == nullptr) gone.insert(pid);
  }
  if (gone.empty()) return;
  for (const uint32_t pid : gone) {
    programs_->ForgetProcess(pid);
    known_.erase(pid);
  }
  for (const auto& [key, fact] : counts.facts) {
    if (gone.contains(key.pid)) programs_->Forget(key);
  }
  std::erase_if(told_, [&gone](const auto& entry) { return gone.contains(entry.first.pid); });
  std::erase_if(names_, [&gone](const auto& entry) { return gone.contains(entry.first.first); });
}

void Network::OnLookup(const rs_net_lookup& lookup) {
  tracked_->CatchUp();
  const auto key = Resolve(lookup.pid, lookup.process_start_ns);
  if (!key) return;
  if (names_.size() >= kMaxNames) {
    ++dropped_;
    return;
  }
  const std::string name(lookup.name, strnlen(lookup.name, RS_NAME));
  Told& told = names_[{lookup.pid, name + ' ' + std::to_string(lookup.code)}];
  ++told.times;
  const Timestamp now = loop_->Now();
  if (told.times > 1 && now - told.at < Told::kAgainAfter) return;
  told.at = now;
  Tell(EventOf(lookup, *key, static_cast<int64_t>(told.times), static_cast<uint64_t>(now.ns)));
}

void Network::ExamineLibraries() {
  const Timestamp now = loop_->Now();
  for (const auto& [pid, process] : table_->processes()) {
    Examined& examined = examined_.try_emplace(process.key, Examined{now, 0}).first->second;
    if (examined.times >= static_cast<int>(std::size(kExamineAfter))) continue;
    if (now - examined.since >= kExamineAfter[examined.times]) {
      Examine(process.key);
      ++examined.times;
    }
  }
  std::erase_if(examined_, [this](const auto& entry) { return !Lives(entry.first); });
}

// A container brings a C library of its own: each file that is met gets its probe.
void Network::Examine(const ProcessKey& key) {
  const bool submitted = worker_->Submit(
      [this, key, probe = programs_->lookup_probe(),
       libraries = libraries_]() -> std::function<void()> {
        const auto library = FindCLibrary(key.pid);
        if (!library || !libraries->emplace(library->device, library->inode).second) return {};
        auto links = Attach(probe, "/proc/" + std::to_string(key.pid) + "/root" + library->path);
        return [this, links = std::move(links)]() mutable {
          if (links) {
            programs_->Add(std::move(*links));
          } else {
            TellState(Availability::kUp,
                      "network: name lookups are not observed: " + links.error());
          }
        };
      },
      kExamineDeadline, {});
  if (!submitted) ++dropped_;
}

}  // namespace rankscope::probes
