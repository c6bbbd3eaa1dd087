// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/node_clock.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "detectors/model/event_types.h"
#include "exporter/loop/boot_clock.h"
#include "exporter/loop/small_file.h"

namespace rankscope::exporter {
namespace {

constexpr double kGapSeconds = 5;  // the engine's own: so long without a tick is a gap
constexpr double kSleptSeconds = 1;
constexpr int kLooksBefore = 10;
constexpr double kNewShare = 0.05;
// The line of interrupts has a number for each of some thousand on a large machine.
constexpr size_t kStatBytes = 256 << 10;

int64_t Milliseconds(double seconds) {
  return std::llround(seconds * 1e3);
}

}  // namespace

// "ctxt N" among the lines; and "on a CPU, waiting for one, ..." in nanoseconds.
NodeCounts ParseNodeCounts(const std::string& stat, const std::string& schedstat) {
  NodeCounts counts;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (double switches = 0; name == "ctxt" && words >> switches) counts.switches = switches;
  }
  double ran = 0, waited = 0;
  if (std::istringstream words(schedstat); words >> ran >> waited) counts.waited = waited * 1e-9;
  return counts;
}

NodeCounts ReadNodeCounts(const std::string& proc_root) {
  NodeCounts counts = ParseNodeCounts(ReadSmallFile(proc_root + "/stat", kStatBytes),
                                      ReadSmallFile(proc_root + "/self/schedstat"));
  // In this order: what passes between the two is no sleep.
  counts.boottime_ns = ReadClock(CLOCK_BOOTTIME);
  counts.monotonic_ns = ReadClock(CLOCK_MONOTONIC);
  return counts;
}

std::optional<Event> NodeClock::Look(const NodeCounts& now) {
  if (!last_) {
    last_ = now;
    return std::nullopt;
  }
  const NodeCounts before = *last_;
  last_ = now;
  const double elapsed = static_cast<double>(now.monotonic_ns - before.monotonic_ns) * 1e-9;
  const double slept = static_cast<double>((now.boottime_ns - now.monotonic_ns) -
                                           (before.boottime_ns - before.monotonic_ns)) *
                       1e-9;
  const bool counted = now.switches && before.switches && *now.switches >= *before.switches;
  const double switches = counted ? *now.switches - *before.switches : 0;
  if (elapsed < kGapSeconds && slept < kSleptSeconds) {
    if (!counted || elapsed <= 0) return std::nullopt;
    const double share = std::max(kNewShare, 1.0 / (looks_ + 1));
    usual_ += share * (switches / elapsed - usual_);
    looks_ = std::min(looks_ + 1, 1000);
    return std::nullopt;
  }
  Event event;
  event.type = WireType(EventType::kNodeGap);
  event.begin = {before.monotonic_ns};
  event.num = {{"elapsed_ms", Milliseconds(elapsed)}, {"slept_ms", Milliseconds(slept)}};
  if (counted && looks_ >= kLooksBefore) {
    event.num.push_back({"switches", std::llround(switches)});
    event.num.push_back({"usual_switches", std::llround(usual_ * elapsed)});
  }
  if (now.waited && before.waited)
    event.num.push_back({"waited_ms", Milliseconds(std::max(0.0, *now.waited - *before.waited))});
  return event;
}

}  // namespace rankscope::exporter
