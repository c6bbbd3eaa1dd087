// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/door.h"

#include <utility>

#include "detectors/logs/text/redactor.h"

namespace rankscope::exporter {

Door::Door(uint32_t source, std::string node, const EventLoop& loop,
           std::function<void(const Observation&)> next,
           std::function<void(const SourceState&)> on_state)
    : source_(source),
      node_(std::move(node)),
      loop_(loop),
      next_(std::move(next)),
      on_state_(std::move(on_state)) {}

void Door::Accept(const Observation& observation) {
  if (const auto* state = std::get_if<SourceState>(&observation.kind)) {
    on_state_(*state);
    return;
  }
  Observation stamped = observation;
  if (stamped.t.ns == 0) stamped.t = loop_.Now();
  if (stamped.seq == 0) stamped.seq = kFirstOwnSeq + accepted_;
  stamped.source = source_;
  stamped.node = node_;
  if (auto* start = std::get_if<ProcessStart>(&stamped.kind)) {
    logs::RedactArguments(start->argv);
    for (KeyValue& variable : start->env) {
      variable.value = logs::RedactValue(variable.key, variable.value);
    }
  }
  ++accepted_;
  last_ = loop_.Now();
  next_(stamped);
}

}  // namespace rankscope::exporter
