// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/process.bpf.c in the kernel: loads and attaches them, hands out their events.
// Everything is undone by the destructor, in milliseconds. Loop
// thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "detectors/model/result.h"

namespace rankscope::probes {

struct Losses {
  int64_t events = 0;     // the ring was full
  int64_t processes = 0;  // the map of tracked processes was full
};

class ProcessPrograms {
 public:
  // One event as bpf/events/process.h lays it out, valid during the call.
  using OnEvent = std::function<void(std::span<const std::byte> event)>;

  // `tracked`: the map of bpf/tracked.h.
  static Result<std::unique_ptr<ProcessPrograms>> Load(int tracked, OnEvent on_event);
  ~ProcessPrograms();
  ProcessPrograms(const ProcessPrograms&) = delete;
  ProcessPrograms& operator=(const ProcessPrograms&) = delete;

  int fd() const;  // readable while events wait
  // At most kEventsPerWake events, so that a storm does not starve the rest of the loop.
  void Consume();
  static constexpr int kEventsPerWake = 4096;

  Losses losses() const;

 private:
  struct Impl;
  explicit ProcessPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
