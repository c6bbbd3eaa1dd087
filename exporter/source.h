// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A source turns one part of the world into observations. Sources live on the loop thread; what may
// block goes to a Worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/library_call.h"
#include "detectors/model/observation.h"
#include "detectors/model/result.h"
#include "detectors/model/sink.h"
#include "detectors/model/slurm_report.h"

namespace rankscope::exporter {

class EventLoop;

// What one kind of probe of a source has done, and what it takes. Names are of closed lists.
struct ProbeUse {
  std::string probe;
  std::vector<std::string> sites;  // the classes of instruction that it stands on
  int64_t runs = 0;
  double seconds = 0;     // of CPU, taken from those who are probed
  double duty_ratio = 1;  // of the time, in which it is attached
};

class Source {
 public:
  virtual ~Source() = default;

  // Registers with the loop and begins to feed `sink`. An error means: not now; the agent says so
  // and tries again.
  virtual Status Start(EventLoop& loop, Sink& sink) = 0;
  virtual void Stop() = 0;

  // Events and bytes that this source knows it has lost.
  virtual int64_t lost() const { return 0; }

  // Of these, what no line's lost_before tells: whose it was is not known, or it was no text.
  virtual int64_t lost_untold() const { return lost(); }

  // What its probes cost others, if it has such.
  virtual std::vector<ProbeUse> probes() const { return {}; }

  // What it counts besides, by names of its own; nothing for most.
  struct Count {
    std::string_view name;
    int64_t value = 0;
  };
  virtual std::vector<Count> counts() const { return {}; }

  // The node's GPUs as last looked at, if it looks at them; else null.
  virtual std::shared_ptr<const std::vector<GpuStatus>> gpus() const { return nullptr; }

  // What is known of the GPUs' Xids, by the one source that tells of it; nothing for the others.
  virtual XidReport xids() const { return {}; }

  // What another program counts of the node's GPUs, if this source asks one; else null.
  virtual std::shared_ptr<const std::vector<GpuProfile>> gpu_profiles() const { return nullptr; }

  // What Slurm's controller says of all jobs and nodes, if this source asks it; else null.
  virtual std::shared_ptr<const SlurmReport> slurm() const { return nullptr; }

  // How its calls into a library that may be slow have gone; nothing for most.
  virtual std::vector<LibraryCall> library_calls() const { return {}; }

 protected:
  // One observation; `t` zero: the door stamps it.
  template <typename T>
  void Tell(T kind, Timestamp t = {}) const {
    Observation observation;
    observation.t = t;
    observation.kind = std::move(kind);
    sink_->Accept(observation);
  }

  // What the agent adds: the source's name, number, interval and losses.
  void TellState(Availability state, std::string reason = {}) const {
    SourceState told;
    told.state = state;
    told.reason = std::move(reason);
    Tell(std::move(told));
  }

  EventLoop* loop_ = nullptr;  // while it runs
  Sink* sink_ = nullptr;       // since it was first started
};

}  // namespace rankscope::exporter
