// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_connector.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "exporter/processes/proc_owner.h"

namespace rankscope::collectors {
namespace {

// A few ten thousand events of 76 bytes, each charged with a page fraction: a fork storm of a
// second.
constexpr int kReceiveBuffer = 4 << 20;
// The kernel acknowledges within the call that subscribes, or (foreign namespace) never.
constexpr Duration kAckPatience = Seconds(2);
// Strangers' execs looked at per second: 50 x 0.1 ms is half a percent of a core.
constexpr int kLooksPerSecond = 50;
constexpr Duration kFactsDeadline = Seconds(5);
// Datagrams taken per wake-up, so that a storm does not starve the rest of the loop.
constexpr int kDatagramsPerWake = 1024;

// Of this process, whatever the folder is that others are looked up in; empty: not known.
std::string ReadPidNamespace() {
  char link[64] = {};
  const ssize_t size = readlink("/proc/self/ns/pid", link, sizeof link - 1);
  return size > 0 ? std::string(link, static_cast<size_t>(size)) : std::string();
}

}  // namespace

ProcConnector::ProcConnector(ProcReader reader, std::shared_ptr<ProcessTable> table)
    : reader_(std::move(reader)), table_(std::move(table)) {}

ProcConnector::~ProcConnector() {
  Stop();
}

Status ProcConnector::Fail(Availability state, std::string reason) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  TellState(state, reason);
  return Error{std::move(reason)};
}

Status ProcConnector::Start(exporter::EventLoop& loop, Sink& sink) {
  sink_ = &sink;
  acknowledged_ = false;
  if (!IsFirstPidNamespace(ReadPidNamespace()).value_or(true)) {
    return Fail(Availability::kUnsupported,
                "proc_connector: rankscope runs in a pid namespace of its own, and the kernel "
                "reports processes by the ids of the first one; exit statuses come from launcher "
                "text; run rankscope in the host's pid namespace (Kubernetes: hostPID)");
  }
  // Not what programs send that number nothing, nor what its answer would look like an event by.
  std::random_device random;
  request_ = 1 + random() % 0xfffffffdu;
  fd_ = socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_CONNECTOR);
  if (fd_ < 0) {
    return Fail(Availability::kUnsupported,
                std::string("proc_connector: no netlink connector (") + std::strerror(errno) +
                    "); exit statuses come from launcher text; needs CONFIG_PROC_EVENTS");
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const bool denied = errno == EPERM || errno == EACCES;
    return Fail(
        denied ? Availability::kDenied : Availability::kDown,
        denied ? "proc_connector: needs CAP_NET_ADMIN (root); exit statuses come from launcher text"
               : std::string("proc_connector: bind: ") + std::strerror(errno));
  }
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer);
  const std::string subscription = ProcSubscription(true, request_);
  if (send(fd_, subscription.data(), subscription.size(), 0) < 0) {
    const bool denied = errno == EPERM || errno == EACCES;
    return Fail(
        denied ? Availability::kDenied : Availability::kUnsupported,
        denied ? "proc_connector: needs CAP_NET_ADMIN (root); exit statuses come from launcher text"
               : std::string("proc_connector: the kernel does not answer (") +
                     std::strerror(errno) + "); needs CONFIG_PROC_EVENTS");
  }
  if (const Status status = loop.Watch(fd_, EPOLLIN, [this](uint32_t) { Receive(); });
      !status.ok()) {
    return Fail(Availability::kDown, status.error());
  }
  loop_ = &loop;
  worker_ = std::make_unique<exporter::Worker>(loop);
  ack_timer_ = loop.After(kAckPatience, [this] {
    TellState(Availability::kUnsupported,
              "proc_connector: the kernel does not confirm the subscription; run rankscope in the "
              "host's pid and user namespace");
  });
  return {};
}

void ProcConnector::Stop() {
  if (loop_ == nullptr) return;
  const std::string subscription = ProcSubscription(false, request_);
  [[maybe_unused]] const ssize_t sent = send(fd_, subscription.data(), subscription.size(), 0);
  loop_->Cancel(ack_timer_);
  loop_->Unwatch(fd_);
  close(fd_);
  fd_ = -1;
  worker_.reset();
  table_->set_exits_told(this, false);
  loop_ = nullptr;
}

void ProcConnector::Receive() {
  char buffer[4096];
  for (int i = 0; i < kDatagramsPerWake; ++i) {
    sockaddr_nl from{};
    socklen_t length = sizeof from;
    const ssize_t n =
        recvfrom(fd_, buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 0 && errno == ENOBUFS) {  // the kernel had to drop; how many it does not say
      ++lost_;
      continue;
    }
    if (n < 0) return;
    if (from.nl_pid != 0) continue;  // not from the kernel
    for (const ProcEvent& event : ParseProcEvents({buffer, static_cast<size_t>(n)})) Handle(event);
  }
}

void ProcConnector::Handle(const ProcEvent& event) {
  if (!acknowledged_ && event.what != ProcEvent::What::kAck) return;  // what others asked for
  switch (event.what) {
    case ProcEvent::What::kAck:
      if (acknowledged_ || !Answers(event, request_)) return;
      loop_->Cancel(ack_timer_);
      acknowledged_ = event.error == 0;
      table_->set_exits_told(this, acknowledged_);
      if (acknowledged_) {
        TellState(Availability::kUp, {});
      } else {
        TellState(Availability::kDenied, std::string("proc_connector: the kernel refuses (") +
                                             std::strerror(static_cast<int>(event.error)) +
                                             "); needs CAP_NET_ADMIN (root)");
      }
      return;
    case ProcEvent::What::kFork:
      if (event.pid == event.process) OnFork(event);  // else a thread
      return;
    case ProcEvent::What::kExec:
      OnExec(event);
      return;
    case ProcEvent::What::kExit:
      if (event.pid == event.process) OnExit(event);
      return;
    case ProcEvent::What::kOther:
      return;
  }
}

void ProcConnector::OnFork(const ProcEvent& event) {
  const TrackedProcess* const parent = table_->Find(event.parent);
  if (parent == nullptr) return;
  const auto stat = reader_.Stat(event.process);
  if (!stat) return;  // gone already: there is no start time to tell it from the next of this pid
  TrackedProcess child = *parent;
  child.parent = parent->key;
  child.key = {stat->pid, stat->start_ticks};
  ProcessStart start;
  start.key = child.key;
  start.parent = child.parent;
  start.uid = child.uid;
  start.comm = stat->comm;
  start.job_id = child.job_id;
  if (!table_->Add(std::move(child))) return;
  Tell(std::move(start));
  AskFacts(*stat);
}

void ProcConnector::OnExec(const ProcEvent& event) {
  const bool tracked = table_->Find(event.process) != nullptr;
  if (!tracked) {
    const int64_t second = loop_->Now().ns / 1'000'000'000;
    if (std::exchange(looks_second_, second) != second) looks_left_ = kLooksPerSecond;
    if (looks_left_ == 0) return;  // the next scan finds it, if it lives that long
    --looks_left_;
  }
  if (auto stat = reader_.Stat(event.process)) AskFacts(std::move(*stat));
}

void ProcConnector::AskFacts(StatLine stat) {
  const ProcessKey key{stat.pid, stat.start_ticks};
  const bool submitted = worker_->Submit(
      [this, reader = reader_, stat = std::move(stat), key]() -> std::function<void()> {
        return
            [this, key, facts = reader.Facts(stat)]() mutable { OnFacts(key, std::move(facts)); };
      },
      kFactsDeadline, {});
  if (!submitted && table_->Find(key.pid) != nullptr) table_->AskFacts(key);  // the scan reads them
}

void ProcConnector::OnFacts(const ProcessKey& key, std::optional<ProcessFacts> facts) {
  if (!facts || table_->HasEnded(key)) return;
  const TrackedProcess* const tracked = table_->Find(key.pid);
  if (tracked != nullptr && tracked->key != key) return;
  if (tracked == nullptr && (!BelongsToAJob(*facts) || key.pid == getpid())) return;
  const TrackedProcess before = tracked == nullptr ? TrackedProcess() : *tracked;
  if (!table_->Add(WithFacts(before, *facts))) return;
  facts->start.job_id = JobKnown(before, *facts);
  Tell(std::move(facts->start));
}

void ProcConnector::OnExit(const ProcEvent& event) {
  const TrackedProcess* const tracked = table_->Find(event.process);
  if (tracked == nullptr) return;
  ProcessExit exit;
  exit.key = tracked->key;
  exit.wait_status = event.wait_status;
  exit.status_known = true;
  exit.core = WCOREDUMP(event.wait_status);
  table_->Remove(exit.key);
  Tell(exit);
}

}  // namespace rankscope::collectors
