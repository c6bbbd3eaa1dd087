// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs of bpf/net.bpf.c in the kernel: loads and attaches them, reads what they count.
// Everything is undone by the destructor, in milliseconds. Loop thread only, but for Probe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bpf/events/net.h"
#include "detectors/model/result.h"
#include "exporter/probes/attach/places.h"

namespace rankscope::probes {

// What there is, at one moment.
struct NetworkCounts {
  std::vector<std::pair<rs_net_key, rs_net_fact>> facts;
  std::vector<rs_net_pending> pending;
  std::vector<rs_net_lookup> lookups;  // that have not returned
  std::vector<std::pair<uint32_t, rs_net_process>> processes;
};

// The programs that watch a library's getaddrinfo.
struct LookupProbe {
  int enter = -1;  // descriptors of the programs
  int leave = -1;
  bool multi = false;
};
// Where they are put. Any thread: a library's path may hang.
Result<std::shared_ptr<Places>> Attach(const LookupProbe& probe, const std::string& library);

class NetworkPrograms {
 public:
  using OnLookup = std::function<void(const rs_net_lookup& lookup)>;

  // `tracked`: the map of bpf/tracked.h.
  static Result<std::unique_ptr<NetworkPrograms>> Load(int tracked, OnLookup on_lookup);
  ~NetworkPrograms();
  NetworkPrograms(const NetworkPrograms&) = delete;
  NetworkPrograms& operator=(const NetworkPrograms&) = delete;

  int fd() const;  // readable while events wait
  void Consume();
  NetworkCounts Read() const;
  void Forget(const rs_net_key& key);
  void ForgetProcess(uint32_t pid);

  LookupProbe lookup_probe() const;
  void Add(std::shared_ptr<Places> links);

  int64_t lost() const;
  // What this kernel does not offer; empty: all is there.
  const std::string& missing() const;

 private:
  struct Impl;
  explicit NetworkPrograms(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
