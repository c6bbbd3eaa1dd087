// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What every observation of one source passes on its way to the engine: time, sequence, node and
// source are stamped, secrets in arguments and environments are masked, and what the source says
// about itself is noted. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "detectors/model/sink.h"
#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

class Door final : public Sink {
 public:
  // Where our own sequence numbers begin: beyond those that a source brings along.
  static constexpr int64_t kFirstOwnSeq = int64_t{1} << 40;

  // `next` takes what has passed; `on_state` hears the source's own SourceState, which goes on only
  // by the agent's word.
  Door(uint32_t source, std::string node, const EventLoop& loop,
       std::function<void(const Observation&)> next,
       std::function<void(const SourceState&)> on_state);

  // Keeps a time and a sequence that the source has set itself: those of a wrapper that has read
  // the clock before.
  void Accept(const Observation& observation) override;

  int64_t accepted() const { return accepted_; }
  Timestamp last() const { return last_; }

 private:
  uint32_t source_;
  std::string node_;
  const EventLoop& loop_;
  std::function<void(const Observation&)> next_;
  std::function<void(const SourceState&)> on_state_;
  int64_t accepted_ = 0;
  Timestamp last_;
};

}  // namespace rankscope::exporter
