// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/node_clock.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "detectors/model/event_types.h"

namespace rankscope::exporter {
namespace {

NodeCounts At(double seconds, double slept, double switches) {
  NodeCounts counts;
  counts.monotonic_ns = static_cast<int64_t>(seconds * 1e9);
  counts.boottime_ns = static_cast<int64_t>((seconds + slept) * 1e9);
  counts.switches = switches;
  counts.waited = 0;
  return counts;
}

// A look each second for half a minute, with 1,000 switches between two.
NodeClock Watching() {
  NodeClock clock;
  for (int i = 0; i <= 30; ++i) EXPECT_FALSE(clock.Look(At(100 + i, 0, 1000.0 * i)));
  return clock;
}

std::map<std::string, int64_t> Numbers(const std::optional<Event>& event) {
  std::map<std::string, int64_t> numbers;
  if (!event) return numbers;
  EXPECT_EQ(event->type, WireType(EventType::kNodeGap));
  for (const IntKeyValue& pair : event->num) numbers[pair.key] = pair.value;
  return numbers;
}

TEST(NodeClock, TextOfTheKernelIsRead) {
  const NodeCounts counts = ParseNodeCounts(
      "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 400 0 0\ncpu1 1 2 3 4 5 6 7 400 0 0\n"
      "intr 5 1 2\nctxt 4711\nbtime 1\n",
      "100 2500000000 7\n");
  EXPECT_EQ(counts.switches, 4711);
  EXPECT_NEAR(*counts.waited, 2.5, 1e-9);
  const NodeCounts nothing = ParseNodeCounts("cpu 1 2\n", "");
  EXPECT_FALSE(nothing.switches || nothing.waited);
}

TEST(NodeClock, ADaemonThatWasStoppedAloneSeesThatTheNodeWorked) {
  NodeClock clock = Watching();
  const auto numbers = Numbers(clock.Look(At(200, 0, 100000)));
  EXPECT_EQ(numbers.at("elapsed_ms"), 70000);
  EXPECT_EQ(numbers.at("slept_ms"), 0);
  EXPECT_EQ(numbers.at("switches"), 70000);
  EXPECT_EQ(numbers.at("usual_switches"), 70000);
}

TEST(NodeClock, ANodeThatStoodStillSwitchedBetweenNoTasks) {
  NodeClock clock = Watching();
  const auto numbers = Numbers(clock.Look(At(200, 0, 30500)));
  EXPECT_EQ(numbers.at("switches"), 500);
  EXPECT_EQ(numbers.at("usual_switches"), 70000);
}

TEST(NodeClock, ANodeThatSleptIsAheadByOneClock) {
  NodeClock clock = Watching();
  const auto numbers = Numbers(clock.Look(At(131, 3600, 31000)));
  EXPECT_EQ(numbers.at("elapsed_ms"), 1000);
  EXPECT_EQ(numbers.at("slept_ms"), 3600000);
  EXPECT_FALSE(clock.Look(At(132, 3600, 32000))) << "it slept once";
}

TEST(NodeClock, AYoungDaemonDoesNotKnowWhatIsUsual) {
  NodeClock clock;
  EXPECT_FALSE(clock.Look(At(100, 0, 0)));
  EXPECT_FALSE(Numbers(clock.Look(At(170, 0, 5))).contains("usual_switches"));
}

TEST(NodeClock, ThisMachineTells) {
  const NodeCounts counts = ReadNodeCounts();
  EXPECT_TRUE(counts.switches);
  EXPECT_GT(counts.monotonic_ns, 0);
}

}  // namespace
}  // namespace rankscope::exporter
