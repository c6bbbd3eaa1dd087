// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/notify_sender.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "exporter/daemon/notify_spool.h"
#include "exporter/loop/start_thread.h"
#include "exporter/notify/channel.h"
#include "exporter/notify/outbox.h"
#include "exporter/run/clock.h"

namespace rankscope::exporter {
namespace {

using notify::Outbox;

// linux/ioprio.h, which is not C++: it has a parameter named class.
constexpr int kThisThread = 1;       // IOPRIO_WHO_PROCESS
constexpr int kIdleClass = 3 << 13;  // IOPRIO_CLASS_IDLE

// Files that nobody has told this thread of: of a wrapper that ended without a daemon.
constexpr Duration kLookAgain = Seconds(30);

}  // namespace

struct NotifySender::Shared {
  Shared(std::shared_ptr<const NotifyConfig> c, std::string folder)
      : config(std::move(c)), spool(std::move(folder)), outbox(config) {}

  std::mutex mutex;
  std::condition_variable wake, gone;
  bool woken = true;  // the spool is to be read
  bool stopping = false;
  bool ended = false;
  NotifyCounts counts;
  std::thread thread;
  std::shared_ptr<const NotifyConfig> next;  // to be taken; null: none

  // Of the thread alone.
  std::shared_ptr<const NotifyConfig> config;
  const NotifySpool spool;
  Outbox outbox;
  std::set<std::string> known;  // files

  void Run();
  void ReadSpool();
  void SendOne(const Outbox::Message& message);
  void Count(const std::function<void(NotifyCounts&)>& change);
};

void NotifySender::Shared::Count(const std::function<void(NotifyCounts&)>& change) {
  const std::lock_guard lock(mutex);
  change(counts);
  for (size_t kind = 0; kind < NotifyCounts::kKinds; ++kind)
    counts.pending[kind] = static_cast<int64_t>(outbox.pending(static_cast<ChannelKind>(kind)));
}

void NotifySender::Shared::ReadSpool() {
  size_t damaged = 0;
  std::set<std::string> there;
  for (NotifySpool::Waiting& waiting : spool.Messages(damaged)) {
    there.insert(waiting.file);
    if (known.contains(waiting.file)) continue;
    const auto notification =
        std::make_shared<const proto::Notification>(waiting.message.notification());
    for (const proto::Delivery& delivery : waiting.message.deliveries()) {
      if (!outbox.Add({waiting.file, notification, delivery, {}}, run::MonotonicNow()) &&
          !spool.Delivered(waiting.file, delivery).ok())
        continue;  // the channel has gone from the configuration; the next start looks again
    }
  }
  known = std::move(there);
  Count([damaged](NotifyCounts& all) { all.damaged += static_cast<int64_t>(damaged); });
}

void NotifySender::Shared::SendOne(const Outbox::Message& message) {
  notify::Batch batch;
  for (const Outbox::Item& item : message.items) batch.push_back(item.notification.get());
  const notify::SendOutcome outcome =
      notify::Send(*config, *message.channel, message.address, batch);
  using End = notify::SendOutcome::End;
  const auto kind = static_cast<size_t>(message.channel->kind);
  std::vector<Outbox::Item> done = message.items;
  if (outcome.end == End::kFailed) {
    done = outbox.Failed(message, run::MonotonicNow());
  } else {
    outbox.Sent(message, run::MonotonicNow());
  }
  for (const Outbox::Item& item : done) {
    if (!spool.Delivered(item.file, item.delivery).ok()) continue;  // it is sent twice
  }
  Count([&](NotifyCounts& all) {
    all.trouble = outcome.error;
    if (outcome.end == End::kTaken) ++all.sent[kind];
    if (outcome.end != End::kTaken) ++all.failed[kind];
    const auto lost = static_cast<int64_t>(done.size());
    if (outcome.end == End::kRefused) all.refused += lost;
    if (outcome.end == End::kFailed) all.given_up += lost;
  });
}

void NotifySender::Shared::Run() {
  // Of this thread alone: the idle class where the disk's scheduler knows it.
  syscall(SYS_ioprio_set, kThisThread, 0, kIdleClass);
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (auto taken = std::exchange(next, nullptr)) {
      config = std::move(taken);
      outbox.SetConfig(config);
      known.clear();
      woken = true;
    }
    if (std::exchange(woken, false)) {
      lock.unlock();
      ReadSpool();
      lock.lock();
      continue;
    }
    lock.unlock();
    const Timestamp now = run::MonotonicNow();
    const std::optional<Outbox::Message> message = outbox.Next(now);
    if (message) SendOne(*message);
    const std::optional<Timestamp> due = message ? now : outbox.NextDue(now);
    const Duration pause = due ? std::min(kLookAgain, *due - now) : kLookAgain;
    lock.lock();
    if (message || stopping || woken || pause.ns <= 0) continue;
    const bool called = wake.wait_for(lock, std::chrono::nanoseconds(pause.ns),
                                      [this] { return stopping || woken; });
    if (!called && pause == kLookAgain) woken = true;
  }
  ended = true;
  gone.notify_all();
}

NotifySender::NotifySender(std::shared_ptr<const NotifyConfig> config, std::string folder)
    : shared_(std::make_shared<Shared>(std::move(config), std::move(folder))) {
  auto thread = StartThread([shared = shared_] { shared->Run(); });
  if (thread) {
    shared_->thread = std::move(*thread);
  } else {
    shared_->ended = true;
    shared_->counts.trouble = "the kernel has no thread to give";
  }
}

NotifySender::~NotifySender() {
  Stop(Milliseconds(150));
}

void NotifySender::Wake() {
  const std::lock_guard lock(shared_->mutex);
  shared_->woken = true;
  shared_->wake.notify_all();
}

void NotifySender::SetConfig(std::shared_ptr<const NotifyConfig> config) {
  const std::lock_guard lock(shared_->mutex);
  shared_->next = std::move(config);
  shared_->woken = true;
  shared_->wake.notify_all();
}

NotifyCounts NotifySender::counts() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->counts;
}

bool NotifySender::Stop(Duration patience) {
  if (std::exchange(stopped_, true)) return true;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
  const bool ended = shared_->gone.wait_for(lock, std::chrono::nanoseconds(patience.ns),
                                            [this] { return shared_->ended; });
  lock.unlock();
  if (!shared_->thread.joinable()) return true;
  if (ended) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
  }
  return ended;
}

}  // namespace rankscope::exporter
