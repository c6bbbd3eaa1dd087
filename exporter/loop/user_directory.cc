// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_directory.h"

#include <pwd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "exporter/loop/start_thread.h"

namespace rankscope::exporter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFirstBuffer = size_t{16} << 10;
constexpr size_t kMostBuffer = size_t{1} << 20;  // of a user with a very long entry

std::chrono::nanoseconds Of(Duration duration) {
  return std::chrono::nanoseconds(duration.ns);
}

bool IsUid(int64_t uid) {
  return uid >= 0 && uid < std::numeric_limits<uint32_t>::max();
}

}  // namespace

std::string NameInDatabase(uint32_t uid) {
  for (size_t size = kFirstBuffer; size <= kMostBuffer; size *= 4) {
    std::vector<char> buffer(size);
    passwd entry{};
    passwd* found = nullptr;
    const int error = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    return error == 0 && found != nullptr ? entry.pw_name : std::string();
  }
  return {};
}

struct UserDirectory::Shared {
  struct Entry {
    std::string name;
    Clock::time_point again;  // to be asked for, not before
    bool asked = false;       // and not answered yet
    bool answered = false;    // at least once
  };

  explicit Shared(Lookup ask) : lookup(std::move(ask)) {}

  const Lookup lookup;
  std::mutex mutex;
  std::condition_variable wake, answer;
  std::map<int64_t, Entry> entries;
  std::deque<int64_t> questions;
  std::function<void(int64_t uid)> tell;
  std::optional<std::thread> thread;
  std::optional<Clock::time_point> asking_since;  // of the question that is with the database
  bool started = false, stopping = false;

  void Run();
  void Ask(int64_t uid, Entry& entry);
  bool IsStuck() const { return asking_since && Clock::now() - *asking_since >= Of(kStuck); }
};

// With the lock held.
void UserDirectory::Shared::Ask(int64_t uid, Entry& entry) {
  if (entry.asked || stopping || Clock::now() < entry.again) return;
  entry.asked = true;
  questions.push_back(uid);
  wake.notify_all();
}

void UserDirectory::Shared::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [this] { return stopping || !questions.empty(); });
    if (stopping) return;
    const int64_t uid = questions.front();
    questions.pop_front();
    asking_since = Clock::now();
    lock.unlock();
    std::string name = lookup(static_cast<uint32_t>(uid));
    lock.lock();
    asking_since.reset();
    Entry& entry = entries[uid];
    entry.asked = false;
    entry.answered = true;
    entry.again = Clock::now() + Of(name.empty() ? kRetry : kKeep);
    answer.notify_all();
    // A directory that is away for a while takes no name from anybody.
    if (name.empty() || name == entry.name) continue;
    entry.name = std::move(name);
    if (tell && !stopping) tell(uid);
  }
}

UserDirectory::UserDirectory(Lookup lookup)
    : shared_(std::make_shared<Shared>(std::move(lookup))) {}

std::string UserDirectory::Known(int64_t uid) {
  if (!IsUid(uid)) return {};
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->started && !shared_->stopping) {
    shared_->started = true;
    shared_->thread = StartThread([shared = shared_] { shared->Run(); });
    if (!shared_->thread) shared_->stopping = true;  // and names are not known
  }
  auto& entries = shared_->entries;
  if (entries.size() >= kMost && !entries.contains(uid)) {
    entries.clear();
    shared_->questions.clear();
  }
  Shared::Entry& entry = entries[uid];
  shared_->Ask(uid, entry);
  return entry.name;
}

std::string UserDirectory::Wait(int64_t uid, Duration patience) {
  std::string known = Known(uid);
  if (!known.empty() || !IsUid(uid)) return known;
  std::unique_lock lock(shared_->mutex);
  const auto limit = Clock::now() + Of(patience);
  const auto settled = [&] {
    return shared_->stopping || shared_->IsStuck() || shared_->entries[uid].answered;
  };
  while (!settled() && Clock::now() < limit)
    shared_->answer.wait_until(lock, std::min(limit, Clock::now() + Of(kStuck)));
  return shared_->entries[uid].name;
}

void UserDirectory::OnName(std::function<void(int64_t uid)> tell) {
  const std::lock_guard lock(shared_->mutex);
  shared_->tell = std::move(tell);
}

bool UserDirectory::Stop() {
  std::unique_lock lock(shared_->mutex);
  shared_->tell = nullptr;
  shared_->stopping = true;
  shared_->wake.notify_all();
  shared_->answer.notify_all();
  if (!shared_->thread || !shared_->thread->joinable()) return true;
  const bool busy = shared_->asking_since.has_value();
  lock.unlock();
  if (busy) {
    shared_->thread->detach();
  } else {
    shared_->thread->join();
  }
  return !busy;
}

}  // namespace rankscope::exporter
