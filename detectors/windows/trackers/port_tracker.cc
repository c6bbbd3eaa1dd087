// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/port_tracker.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "detectors/model/event_types.h"

namespace rankscope::windows {

void Counted::Add(double value) {
  if (!std::isfinite(value) || value < 0) return;
  if (seen && value > last) rose += value - last;
  seen = true;
  last = value;
}

void PortTracker::OnEvent(const Event& event, const Speaker&, Timestamp t) {
  if (event.type != WireType(EventType::kPortCounters)) return;
  constexpr size_t kMaxName = 64;
  const auto text = [&event](std::string_view key) {
    for (const KeyValue& pair : event.str) {
      if (pair.key == key) return pair.value.substr(0, kMaxName);
    }
    return std::string();
  };
  const std::pair name{text("device"), text("port")};
  if (ports_.size() >= kMaxPorts && !ports_.contains(name)) return;
  const auto [found, first] = ports_.try_emplace(name);
  PortSeen& port = found->second;
  port.link = text("link");
  port.state = text("state");
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == "up") port.up = pair.value != 0;
    const PortCounterKind* kind = FindPortCounterKind(pair.key);
    if (kind == nullptr) continue;
    Counted& count = port.counts[static_cast<size_t>(kind - kPortCounterKinds.data())];
    const double before = count.rose;
    count.Add(static_cast<double>(pair.value));
    if (kind->fault && count.rose > before) port.last_fault = t;
  }
  if (first) port.was_up = port.up;
  if (port.was_up && !port.up) {
    port.fell = true;
    port.last_fault = t;
  }
}

void PortTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp) {
  for (const Sample& sample : batch.samples) {
    const double value = sample.value;
    switch (sample.signal) {
      case SignalId::kRdmaReceivedBytes:
        received_.Add(value);
        break;
      case SignalId::kRdmaSentBytes:
        sent_.Add(value);
        break;
      case SignalId::kRdmaPortsDown:
        if (std::isfinite(value)) ports_down_ = std::clamp(value, 0.0, 1e6);
        break;
      case SignalId::kTcpSentBytes:
        if (speaker.rank >= 0 && std::isfinite(value) && value >= 0 &&
            (tcp_sent_.size() < kMaxRanks || tcp_sent_.contains(speaker.rank))) {
          tcp_sent_[speaker.rank] = value;
        }
        break;
      default:
        break;
    }
  }
}

double PortTracker::Rose(size_t kind) const {
  double sum = -1;
  for (const auto& [name, port] : ports_) {
    if (port.counts[kind].seen) sum = std::max(sum, 0.0) + port.counts[kind].rose;
  }
  return sum;
}

double PortTracker::tcp_sent_bytes() const {
  double sum = 0;
  for (const auto& [rank, bytes] : tcp_sent_) sum += bytes;
  return sum;
}

}  // namespace rankscope::windows
