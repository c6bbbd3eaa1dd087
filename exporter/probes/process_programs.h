// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/process.bpf.c in the kernel: loads and attaches them, hands out their events,
// and tells them whom to track. Everything is undone by the destructor, in milliseconds. Loop
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "detectors/model/ids.h"
#include "detectors/model/result.h"

namespace rankscope::probes {

// What /proc counts starts in, on every architecture: USER_HZ.
inline constexpr uint64_t kNsPerTick = 10'000'000;

// One program, for the table in bpf/README.md.
struct ProgramRow {
  std::string_view name;
  std::string_view hook;
  std::string_view event;
  std::string_view cost;
};
std::span<const ProgramRow> ProcessProgramTable();

struct Losses {
  int64_t events = 0;     // the ring was full
  int64_t processes = 0;  // the map of tracked processes was full
};

class ProcessPrograms {
 public:
  // One event as bpf/events.h lays it out, valid during the call.
  using OnEvent = std::function<void(std::span<const std::byte> event)>;

  static Result<std::unique_ptr<ProcessPrograms>> Load(OnEvent on_event);
  ~ProcessPrograms();
  ProcessPrograms(const ProcessPrograms&) = delete;
  ProcessPrograms& operator=(const ProcessPrograms&) = delete;

  int fd() const;  // readable while events wait
  // At most kEventsPerWake events, so that a storm does not starve the rest of the loop.
  void Consume();
  static constexpr int kEventsPerWake = 4096;

  // Children, signals and the end of this process are told from now on.
  void Track(int32_t pid);
  // Unless the pid has another owner by now.
  void Untrack(const ProcessKey& key);

  Losses losses() const;

 private:
  struct Impl;
  explicit ProcessPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
