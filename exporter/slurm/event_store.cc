// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/event_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "exporter/loop/owned_fd.h"
#include "exporter/slurm/event_json.h"

namespace rankscope::exporter::slurm {
namespace {

Error DiskError(const std::string& path) {
  return Error{path + ": " + strerror(errno) + "; Slurm's events are kept in memory only"};
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return DiskError(path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status Append(const std::vector<std::shared_ptr<const SlurmEvent>>& events,
              const std::string& path) {
  std::string text;
  for (const auto& event : events) text += EventToJson(*event) + "\n";
  const OwnedFd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return DiskError(path);
  if (auto written = WriteAll(file.get(), text, path); !written) return written;
  if (fdatasync(file.get()) != 0) return DiskError(path);
  return {};
}

// Readers of the next start see the old or the new file.
Status WriteAnew(const SlurmEvents& events, const std::string& path) {
  std::string text;
  for (const auto& event : *events) text += EventToJson(*event) + "\n";
  const std::string next = path + ".next";
  {
    const OwnedFd file(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
    if (!file) return DiskError(next);
    if (auto written = WriteAll(file.get(), text, next); !written) return written;
    if (fsync(file.get()) != 0) return DiskError(next);
  }
  if (rename(next.c_str(), path.c_str()) != 0) return DiskError(path);
  return {};
}

}  // namespace

EventStore::EventStore(size_t most)
    : most_(most),
      events_(std::make_shared<const std::deque<std::shared_ptr<const SlurmEvent>>>()),
      self_(std::make_shared<EventStore*>(this)) {}

EventStore::~EventStore() {
  *self_ = nullptr;
}

Status EventStore::Open(const std::string& path, DiskThread& disk) {
  path_ = path;
  disk_ = &disk;
  auto events = std::make_shared<std::deque<std::shared_ptr<const SlurmEvent>>>();
  std::ifstream in(path);
  for (std::string line; std::getline(in, line); ++lines_) {
    auto event = EventFromJson(line);
    // Numbers rise; a file that says otherwise was not written here.
    if (!event || event->number < next_) continue;
    next_ = event->number + 1;
    events->push_back(std::make_shared<const SlurmEvent>(std::move(*event)));
    if (events->size() > most_) events->pop_front();
  }
  // first_kept() counts back from the newest: a gap would make it wrong.
  for (size_t i = events->size(); i > 1; --i) {
    if ((*events)[i - 1]->number == (*events)[i - 2]->number + 1) continue;
    events->erase(events->begin(), events->begin() + static_cast<ptrdiff_t>(i - 1));
    break;
  }
  events_ = std::move(events);
  Status written = WriteAnew(events_, path_);
  if (written) {
    lines_ = events_->size();
  } else {
    trouble_ = written.error();
    anew_ = true;
  }
  return written;
}

void EventStore::Reopen(DiskThread& disk) {
  disk_ = &disk;
  writing_ = false;
  anew_ = true;  // what was on its way may have been lost
  Write();
}

void EventStore::Add(std::vector<SlurmEvent> events) {
  if (events.empty()) return;
  auto kept = std::make_shared<std::deque<std::shared_ptr<const SlurmEvent>>>(*events_);
  std::vector<std::shared_ptr<const SlurmEvent>> added;
  for (SlurmEvent& event : events) {
    event.number = next_++;
    const auto* const kind =
        std::find(std::begin(kSlurmEventKinds), std::end(kSlurmEventKinds), event.kind);
    if (kind != std::end(kSlurmEventKinds))
      ++counts_[static_cast<size_t>(kind - std::begin(kSlurmEventKinds))];
    added.push_back(std::make_shared<const SlurmEvent>(std::move(event)));
    kept->push_back(added.back());
    if (kept->size() > most_) kept->pop_front();
  }
  events_ = std::move(kept);
  if (path_.empty()) return;
  unwritten_.insert(unwritten_.end(), added.begin(), added.end());
  lines_ += added.size();
  // Of so many that wait the file is written as a whole.
  if (lines_ > 2 * most_ || unwritten_.size() > most_) anew_ = true;
  if (anew_) unwritten_.clear();
  Write();
}

// One write at a time; what comes meanwhile goes with the next.
void EventStore::Write() {
  if (writing_ || disk_ == nullptr || (unwritten_.empty() && !anew_)) return;
  const bool anew = std::exchange(anew_, false);
  if (anew) lines_ = events_->size();
  auto work = [anew, path = path_, all = anew ? events_ : SlurmEvents(),
               added = std::exchange(unwritten_, {}), self = self_]() -> std::function<void()> {
    return [self, outcome = anew ? WriteAnew(all, path) : Append(added, path)] {
      if (*self != nullptr) (*self)->OnWritten(outcome);
    };
  };
  writing_ = disk_->Submit(std::move(work));
  if (!writing_) anew_ = true;  // with the next event
}

void EventStore::OnWritten(const Status& outcome) {
  writing_ = false;
  if (outcome) {
    trouble_.clear();
    return Write();
  }
  // What the file holds now is not known; it is written again with the next event.
  trouble_ = outcome.error();
  anew_ = true;
  unwritten_.clear();
}

std::vector<std::pair<std::string_view, int64_t>> EventStore::counts() const {
  std::vector<std::pair<std::string_view, int64_t>> counts;
  for (size_t i = 0; i < counts_.size(); ++i) counts.emplace_back(kSlurmEventKinds[i], counts_[i]);
  return counts;
}

}  // namespace rankscope::exporter::slurm
