// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what the node's RDMA ports counted while it ran, against what they had counted
// before: bytes of the host, and per port what went wrong. And TCP's bytes of its ranks beside
// them. Bounded. Single writer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "detectors/model/observation.h"
#include "detectors/model/port_counters.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// A counter's way since it was first seen; a smaller value is a new beginning.
struct Counted {
  bool seen = false;
  double last = 0;
  double rose = 0;

  void Add(double value);
  template <class A>
  void Fields(A& a) {
    a(seen, last, rose);
  }
};

struct PortSeen {
  std::string link, state;
  bool up = false;
  bool was_up = false;  // when it was first seen
  bool fell = false;    // it was up and is down, or has been
  std::array<Counted, kPortCounterKinds.size()> counts;
  Timestamp last_fault;

  template <class A>
  void Fields(A& a) {
    a(link, state, up, was_up, fell, counts, last_fault);
  }
};

class PortTracker {
 public:
  static constexpr size_t kMaxPorts = 64;
  static constexpr size_t kMaxRanks = 1024;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);

  bool any() const { return received_.seen || !ports_.empty(); }
  double received_bytes() const { return received_.rose; }
  double sent_bytes() const { return sent_.rose; }
  double ports_down() const { return ports_down_; }
  // By device and port.
  const std::map<std::pair<std::string, std::string>, PortSeen>& ports() const { return ports_; }
  // Of all ports, by kind as in kPortCounterKinds; -1 = no port counts it.
  double Rose(size_t kind) const;
  // What the ranks of this node have sent over TCP since they began.
  bool tcp_known() const { return !tcp_sent_.empty(); }
  double tcp_sent_bytes() const;

  template <class A>
  void Fields(A& a) {
    a(received_, sent_, ports_down_, ports_, tcp_sent_);
    while (ports_.size() > kMaxPorts) ports_.erase(ports_.begin());  // restored from damaged bytes
    while (tcp_sent_.size() > kMaxRanks) tcp_sent_.erase(tcp_sent_.begin());
  }

 private:
  Counted received_, sent_;
  double ports_down_ = 0;
  std::map<std::pair<std::string, std::string>, PortSeen> ports_;
  std::map<int32_t, double> tcp_sent_;  // by rank
};

}  // namespace rankscope::windows
