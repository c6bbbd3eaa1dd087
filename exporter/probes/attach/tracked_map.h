// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The kernel's view of the process table: the map of bpf/tracked.h, made once and given to every
// BPF object, so that one decision about a process counts for all programs. Follows the table from
// its first use on. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "detectors/model/ids.h"
#include "detectors/model/result.h"
#include "exporter/processes/process_table.h"

namespace rankscope::probes {

// What /proc counts starts in, on every architecture: USER_HZ.
inline constexpr uint64_t kNsPerTick = 10'000'000;

// A process by what programs in the kernel know of it: its start since boot.
inline ProcessKey KeyOf(uint32_t pid, uint64_t start_ns) {
  return {static_cast<int32_t>(pid), static_cast<int64_t>(start_ns / kNsPerTick)};
}

class TrackedMap {
 public:
  explicit TrackedMap(std::shared_ptr<collectors::ProcessTable> table);
  ~TrackedMap();
  TrackedMap(const TrackedMap&) = delete;
  TrackedMap& operator=(const TrackedMap&) = delete;

  // Makes the map at the first call and fills it with whom the table knows.
  [[nodiscard]] Result<int> Open();

  void Track(int32_t pid);
  // Unless the pid has another owner by now.
  void Untrack(const ProcessKey& key);
  // Forgets whom the table does not know: candidates whose end nobody has seen.
  void Resync();

  // Hears of a process that is no longer tracked, before its end is told: the last moment to say
  // what programs have counted of it. One per owner; an empty function takes it back.
  using OnGone = std::function<void(const ProcessKey& key)>;
  void set_on_gone(const void* owner, OnGone on_gone);

  // Events of a program come through a ring of its own, and may speak of a process whose birth
  // still waits in another one: whoever reads events calls CatchUp first.
  void set_on_catch_up(std::function<void()> on_catch_up) { on_catch_up_ = std::move(on_catch_up); }
  void CatchUp() const {
    if (on_catch_up_) on_catch_up_();
  }

 private:
  std::shared_ptr<collectors::ProcessTable> table_;
  int fd_ = -1;
  std::map<const void*, OnGone> on_gone_;
  std::function<void()> on_catch_up_;
};

}  // namespace rankscope::probes
