// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The newest of Slurm's events, in memory and in a file: one line of JSON each, appended as they
// come, written anew when the file has grown to twice of what is kept. A last line that a crash has
// cut is passed over; a disk that refuses costs the file, never the daemon. Loop thread only.
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

namespace rankscope::exporter::slurm {

class EventStore {
 public:
  explicit EventStore(size_t most = 20'000);  // some 1 kB each

  // Reads what is there. An error is the disk's: it goes on in memory.
  Status Open(const std::string& path);

  // Gives them their numbers and keeps them; the error is the disk's.
  Status Add(std::vector<SlurmEvent> events);

  SlurmEvents events() const { return events_; }
  int64_t first_kept() const { return next_ - static_cast<int64_t>(events_->size()); }
  // By kind, all kinds, since the daemon's start.
  std::vector<std::pair<std::string_view, int64_t>> counts() const;

 private:
  Status Append(const std::vector<std::shared_ptr<const SlurmEvent>>& events);
  Status WriteAnew();

  const size_t most_;
  std::string path_;  // empty = none
  SlurmEvents events_;
  int64_t next_ = 1;
  size_t lines_ = 0;  // of the file
  std::array<int64_t, std::size(kSlurmEventKinds)> counts_{};
};

}  // namespace rankscope::exporter::slurm
