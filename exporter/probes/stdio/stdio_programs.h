// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/stdio.bpf.c in the kernel: loads them with the cheapest way of meeting a
// write that this kernel offers, hands out what was written, and reads the counts of each stream.
// Everything is undone by the destructor. Loop thread only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bpf/events/stdio.h"
#include "detectors/model/result.h"

namespace rankscope::probes {

// What a stream may say: on average, and at once.
struct SpeechBudget {
  int64_t bytes_per_second = 64 << 10;
  int64_t burst_bytes = 1 << 20;
};

class StdioPrograms {
 public:
  // One record, valid during the call. It waits until WorkedOff is called with its `room`, the
  // bytes that it takes of its user's share.
  using OnSaid = std::function<void(const rs_said& said, std::string_view data, size_t room)>;

  // `tracked`: the map of bpf/tracked.h.
  static Result<std::unique_ptr<StdioPrograms>> Load(int tracked, const SpeechBudget& budget,
                                                     OnSaid on_said);
  ~StdioPrograms();
  StdioPrograms(const StdioPrograms&) = delete;
  StdioPrograms& operator=(const StdioPrograms&) = delete;

  // One of kHooks: how a write is met.
  static constexpr std::array<std::string_view, 3> kHooks = {"fexit", "tracepoint", "raw"};
  std::string_view attached_by() const;

  int fd() const;  // readable when much waits; who wants the rest comes by himself
  // At most kRecordsPerWake records; true when that was all.
  bool Consume();
  static constexpr int kRecordsPerWake = 4096;
  // The user's share has so much room again.
  void WorkedOff(uint32_t share, size_t room);

  // Of a process that lives, or ended a moment ago.
  std::optional<rs_standard> StartedWith(uint32_t pid) const;
  std::optional<rs_stream> Counts(uint32_t pid, uint32_t stream) const;
  // What is written to this file by this stream is of no interest any more.
  void Ignore(uint32_t pid, uint32_t stream, const rs_file& file);
  // The process has ended and its counts were read; another one may have its pid by now.
  void Forget(uint32_t pid, uint64_t start_ns);
  // Forgets the streams of processes that are gone and of whom nothing was told; `gone` takes a
  // stream and its last counts.
  void Sweep(const std::function<bool(const rs_stream_key& stream, const rs_stream& counts)>& gone);
  // Bytes of processes for whom the kernel's map had no room.
  int64_t no_room() const;
  int64_t malformed() const;

 private:
  struct Impl;
  explicit StdioPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
