// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/io.bpf.c in the kernel: loads and attaches them, hands out their events,
// reads what they count. Everything is undone by the destructor, in milliseconds. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bpf/events/io.h"
#include "detectors/model/result.h"

namespace rankscope::probes {

class IoPrograms {
 public:
  using OnEvent = std::function<void(const rs_io_event& event)>;

  // `tracked`: the map of bpf/tracked.h.
  static Result<std::unique_ptr<IoPrograms>> Load(int tracked, OnEvent on_event);
  ~IoPrograms();
  IoPrograms(const IoPrograms&) = delete;
  IoPrograms& operator=(const IoPrograms&) = delete;

  int fd() const;  // readable while events wait
  void Consume();

  std::vector<std::pair<rs_io_failure_key, rs_io_failure>> Failures() const;
  std::vector<std::pair<uint32_t, rs_io_process>> Processes() const;
  std::vector<std::pair<rs_io_key, rs_io_file>> Files() const;  // that are open
  // Threads inside fsync(), by pid and tid, and since when.
  std::vector<std::pair<uint64_t, uint64_t>> Syncs() const;
  void Forget(const rs_io_failure_key& key);
  void Forget(const rs_io_key& key);
  void ForgetProcess(uint32_t pid);

  int64_t lost() const;
  // What this kernel does not offer; empty: all is there.
  const std::string& missing() const;

 private:
  struct Impl;
  explicit IoPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
