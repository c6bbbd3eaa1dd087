// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the node stood still while the daemon did. A daemon that did not get to work may have
// been stopped alone, or have had no CPU; the kernel's counts of the whole node tell these apart,
// and its clocks tell whether it slept. Looked at with each tick. Loop thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "detectors/model/observation.h"

namespace rankscope::exporter {

// As /proc and the clocks have them now; empty or 0 where they tell nothing.
struct NodeCounts {
  int64_t monotonic_ns = 0;        // does not run while the node sleeps
  int64_t boottime_ns = 0;         // runs on
  std::optional<double> switches;  // between tasks, of all CPUs, since boot
  std::optional<double> waited;  // seconds that the daemon's main thread wanted a CPU and had none
};

// Text of /proc/stat and of /proc/self/schedstat. Pure.
NodeCounts ParseNodeCounts(const std::string& stat, const std::string& schedstat);
NodeCounts ReadNodeCounts(const std::string& proc_root = "/proc");

class NodeClock {
 public:
  // What is told where nobody looked for long, or the node slept meanwhile.
  std::optional<Event> Look(const NodeCounts& now);

 private:
  std::optional<NodeCounts> last_;
  double usual_ = 0;  // switches a second, over the last twenty looks or so
  int looks_ = 0;     // that make it up
};

}  // namespace rankscope::exporter
