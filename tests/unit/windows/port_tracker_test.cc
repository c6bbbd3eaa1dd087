// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the node's RDMA ports counted under a run, and what they had counted before it.
#include "detectors/windows/trackers/port_tracker.h"

#include <gtest/gtest.h>

#include <cmath>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

Event Port(const std::string& device, bool up, int64_t downs, int64_t symbols) {
  Event event;
  event.type = WireType(EventType::kPortCounters);
  event.str = {{"device", device},
               {"port", "1"},
               {"link", "infiniband"},
               {"state", up ? "4: ACTIVE" : "1: DOWN"}};
  event.num = {
      {"up", up ? 1 : 0}, {"link_downs", downs}, {"symbol_errors", symbols}, {"unheard_of", 7}};
  return event;
}

SampleBatch Host(double sent) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kHost;
  batch.samples = {{SignalId::kRdmaSentBytes, static_cast<double>(sent)},
                   {SignalId::kRdmaReceivedBytes, static_cast<double>(sent)},
                   {SignalId::kRdmaPortsDown, 1}};
  return batch;
}

size_t Kind(std::string_view name) {
  return static_cast<size_t>(FindPortCounterKind(name) - kPortCounterKinds.data());
}

TEST(PortTracker, OnlyWhatRoseUnderTheRunIsTheRuns) {
  PortTracker tracker;
  EXPECT_FALSE(tracker.any());
  tracker.OnEvent(Port("mlx5_0", true, 3, 400), {}, {1});
  EXPECT_EQ(tracker.Rose(Kind("link_downs")), 0);
  tracker.OnEvent(Port("mlx5_0", true, 5, 410), {}, {2});
  EXPECT_EQ(tracker.Rose(Kind("link_downs")), 2);
  EXPECT_EQ(tracker.Rose(Kind("symbol_errors")), 10);
  EXPECT_EQ(tracker.Rose(Kind("timeouts")), -1) << "no port counts it";
  EXPECT_EQ(tracker.ports().begin()->second.last_fault.ns, 2);
  EXPECT_FALSE(tracker.ports().begin()->second.fell);
}

TEST(PortTracker, APortThatWasNeverUpHasNotFallen) {
  PortTracker tracker;
  tracker.OnEvent(Port("mlx5_0", false, 0, 0), {}, {1});
  tracker.OnEvent(Port("mlx5_0", false, 0, 0), {}, {2});
  tracker.OnEvent(Port("mlx5_1", true, 0, 0), {}, {1});
  tracker.OnEvent(Port("mlx5_1", false, 0, 0), {}, {2});
  const auto& ports = tracker.ports();
  EXPECT_FALSE(ports.at({"mlx5_0", "1"}).fell);
  EXPECT_TRUE(ports.at({"mlx5_1", "1"}).fell);
}

TEST(PortTracker, BytesSinceTheFirstSample) {
  PortTracker tracker;
  tracker.OnSamples(Host(5000), {}, {1});
  tracker.OnSamples(Host(7000), {}, {2});
  tracker.OnSamples(Host(100), {}, {3});  // the daemon began anew
  tracker.OnSamples(Host(400), {}, {4});
  EXPECT_EQ(tracker.sent_bytes(), 2300);
  EXPECT_EQ(tracker.ports_down(), 1);
}

TEST(PortTracker, IsBoundedAndTheSameWhenRestored) {
  PortTracker tracker;
  for (int i = 0; i < 1000; ++i)
    tracker.OnEvent(Port(std::string(1000, 'd') + std::to_string(i), true, i, 0), {}, {1});
  for (int i = 0; i < 1000; ++i)
    tracker.OnEvent(Port("d" + std::to_string(i), true, i, 0), {}, {1});
  EXPECT_LE(tracker.ports().size(), PortTracker::kMaxPorts);
  SampleBatch odd = Host(NAN);
  odd.samples[2].value = INFINITY;
  tracker.OnSamples(odd, {}, {1});
  EXPECT_EQ(tracker.sent_bytes(), 0);
  ArchiveWriter writer;
  writer(tracker);
  const std::string bytes = writer.Take();
  PortTracker restored;
  ArchiveReader reader(bytes);
  reader(restored);
  EXPECT_TRUE(reader.Complete());
  EXPECT_EQ(restored.ports().size(), tracker.ports().size());
}

}  // namespace
}  // namespace rankscope::windows
