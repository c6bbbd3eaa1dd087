// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The objects bpf/cuda.bpf.c and bpf/nccl.bpf.c in the kernel: their programs, loaded and not yet
// attached, their maps, and their ring of rare facts. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bpf/events/calls.h"
#include "detectors/model/result.h"
#include "exporter/probes/attach/uprobe_link.h"
#include "exporter/probes/calls/call_attacher.h"

namespace rankscope::probes {

enum class CallObjectKind : uint8_t { kCuda, kNccl };

class CallObject {
 public:
  using OnCall = std::function<void(const rs_call& call)>;

  // `tracked`: the map of bpf/tracked.h.
  static Result<std::shared_ptr<CallObject>> Load(CallObjectKind kind, int tracked, AttachVia via,
                                                  OnCall on_call);
  ~CallObject();
  CallObject(const CallObject&) = delete;
  CallObject& operator=(const CallObject&) = delete;

  // Of `self`, who keeps the programs loaded.
  static CallPrograms Programs(const std::shared_ptr<CallObject>& self);
  int fd() const;  // readable while rare facts wait
  void Consume();
  int64_t lost() const;

  int counts() const;         // pid -> rs_cuda_counts, rs_nccl_counts
  int communicators() const;  // rs_handle -> rs_communicator
  int asked() const;          // rs_handle -> rs_asked

 private:
  void TrackSelf(bool track) const;
  void BeginTiming() const;
  void BeginLaunches() const;

  struct Impl;
  explicit CallObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::probes
