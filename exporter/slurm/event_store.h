// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The newest of Slurm's events, in memory and in a file: one line of JSON each, appended as they
// come, written anew when the file has grown to twice of what is kept. A last line that a crash has
// cut is passed over; a disk that refuses or hangs costs the file, never the daemon: it is written
// on a thread of its own. Loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/slurm_report.h"
#include "exporter/loop/disk_thread.h"

namespace rankscope::exporter::slurm {

class EventStore {
 public:
  explicit EventStore(size_t most = 20'000);  // some 1 kB each

  ~EventStore();
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  // Reads what is there, at once. An error is the disk's: it goes on in memory.
  Status Open(const std::string& path, DiskThread& disk);
  // Nothing is written any more; `disk` may go.
  void Close() { disk_ = nullptr; }
  // Goes on after that.
  void Reopen(DiskThread& disk);

  // Gives them their numbers and keeps them.
  void Add(std::vector<SlurmEvent> events);

  // Why the file is not what is kept; empty: it is, or will be.
  const std::string& trouble() const { return trouble_; }
  // Events, or their file, are on their way to the disk.
  bool writing() const { return writing_; }

  SlurmEvents events() const { return events_; }
  int64_t first_kept() const { return next_ - static_cast<int64_t>(events_->size()); }
  // By kind, all kinds, since the daemon's start.
  std::vector<std::pair<std::string_view, int64_t>> counts() const;

 private:
  using Events = std::vector<std::shared_ptr<const SlurmEvent>>;

  void Write();
  void OnWritten(const Status& outcome);

  const size_t most_;
  std::string path_;  // empty = none
  SlurmEvents events_;
  int64_t next_ = 1;
  size_t lines_ = 0;  // of the file
  DiskThread* disk_ = nullptr;
  Events unwritten_;
  bool anew_ = false;  // the file must be written as a whole
  bool writing_ = false;
  std::string trouble_;
  std::shared_ptr<EventStore*> self_;  // null for results that come after it is gone
  std::array<int64_t, std::size(kSlurmEventKinds)> counts_{};
};

}  // namespace rankscope::exporter::slurm
