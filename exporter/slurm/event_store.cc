// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/event_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "exporter/owned_fd.h"
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

}  // namespace

EventStore::EventStore(size_t most)
    : most_(most),
      events_(std::make_shared<const std::deque<std::shared_ptr<const SlurmEvent>>>()) {}

Status EventStore::Open(const std::string& path) {
  path_ = path;
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
  return WriteAnew();
}

Status EventStore::Add(std::vector<SlurmEvent> events) {
  if (events.empty()) return {};
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
  if (path_.empty()) return {};
  return lines_ + added.size() > 2 * most_ ? WriteAnew() : Append(added);
}

std::vector<std::pair<std::string_view, int64_t>> EventStore::counts() const {
  std::vector<std::pair<std::string_view, int64_t>> counts;
  for (size_t i = 0; i < counts_.size(); ++i) counts.emplace_back(kSlurmEventKinds[i], counts_[i]);
  return counts;
}

Status EventStore::Append(const std::vector<std::shared_ptr<const SlurmEvent>>& events) {
  std::string text;
  for (const auto& event : events) text += EventToJson(*event) + "\n";
  const OwnedFd file(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return DiskError(path_);
  lines_ += events.size();
  if (auto written = WriteAll(file.get(), text, path_); !written) return written;
  if (fdatasync(file.get()) != 0) return DiskError(path_);
  return {};
}

// Readers of the next start see the old or the new file.
Status EventStore::WriteAnew() {
  std::string text;
  for (const auto& event : *events_) text += EventToJson(*event) + "\n";
  const std::string next = path_ + ".next";
  {
    const OwnedFd file(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
    if (!file) return DiskError(next);
    if (auto written = WriteAll(file.get(), text, next); !written) return written;
    if (fsync(file.get()) != 0) return DiskError(next);
  }
  if (rename(next.c_str(), path_.c_str()) != 0) return DiskError(path_);
  lines_ = events_->size();
  return {};
}

}  // namespace rankscope::exporter::slurm
