// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What all sources that live from programs in the kernel do alike: ask whether the kernel takes
// such programs, say so where it does not, and tell what they see of processes of jobs. Loop thread
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "detectors/model/observation.h"
#include "exporter/loop/event_loop.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/probes/attach/tracked_map.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::probes {

class ProbeSource : public exporter::Source {
 protected:
  // `name` begins the words of its state; `force`: tries even where the kernel should not do.
  ProbeSource(std::string name, std::shared_ptr<collectors::ProcessTable> table,
              std::shared_ptr<TrackedMap> tracked, bool force);

  // The first step of Start: the map of tracked processes. An obstacle is told as the source's
  // state, and is the error.
  Result<int> Admit(Sink& sink, const std::optional<Capability>& obstacle);
  // Tells that the source cannot be, and why; the reason as an error.
  Error Unsupported(std::string reason);

  void TellState(Availability state, std::string reason);
  // `t`: zero = the door stamps it.
  template <typename T>
  void Tell(T kind, Timestamp t = {}) {
    Observation observation;
    observation.t = t;
    observation.kind = std::move(kind);
    sink_->Accept(observation);
  }

  // Whether it is a process of a job that lives.
  bool Lives(const ProcessKey& key) const;
  // The same, or one whose end was told a moment ago; false for strangers, who are tracked until
  // user space has looked at them.
  bool IsOurs(const ProcessKey& key) const;

  const std::string name_;
  const std::shared_ptr<collectors::ProcessTable> table_;
  const std::shared_ptr<TrackedMap> tracked_;
  exporter::EventLoop* loop_ = nullptr;  // while it runs

 private:
  bool force_;
  Sink* sink_ = nullptr;
};

}  // namespace rankscope::probes
