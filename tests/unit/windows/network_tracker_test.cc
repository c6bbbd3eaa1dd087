// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/network_tracker.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

Event Connect(std::string peer, std::string outcome, int64_t attempts) {
  Event event;
  event.type = WireType(EventType::kConnect);
  event.str = {{"peer", std::move(peer)}, {"host", "h"}, {"outcome", std::move(outcome)}};
  event.num = {{"port", 29500}, {"attempts", attempts}};
  return event;
}

Speaker Of(int32_t rank) {
  return {rank, rank, {1000 + rank, 1}};
}

TEST(NetworkTracker, OneEntryForOneProcessPeerAndOutcome) {
  NetworkTracker tracker;
  tracker.OnEvent(Connect("h:29500", "refused", 1), Of(0), {100});
  tracker.OnEvent(Connect("h:29500", "refused", 9), Of(0), {900});
  tracker.OnEvent(Connect("h:29500", "connected", 1), Of(0), {950});
  tracker.OnEvent(Connect("h:29500", "refused", 1), Of(1), {960});
  ASSERT_EQ(tracker.contacts().size(), 3u);
  EXPECT_EQ(tracker.contacts()[0].attempts, 9);
  EXPECT_EQ(tracker.contacts()[0].first.ns, 100);
  EXPECT_EQ(tracker.contacts()[0].last.ns, 900);
}

TEST(NetworkTracker, WhatWentWellGivesWay) {
  NetworkTracker tracker;
  for (size_t i = 0; i < NetworkTracker::kMost; ++i)
    tracker.OnEvent(Connect("p" + std::to_string(i), i == 5 ? "connected" : "refused", 1), Of(0),
                    {1});
  tracker.OnEvent(Connect("new", "refused", 1), Of(0), {2});
  tracker.OnEvent(Connect("one too many", "refused", 1), Of(0), {3});
  EXPECT_EQ(tracker.contacts().size(), NetworkTracker::kMost);
  EXPECT_EQ(tracker.contacts().back().peer, "new");
  EXPECT_EQ(tracker.dropped(), 2);
}

TEST(NetworkTracker, TheCoordinatorByEnvironmentAndCommand) {
  NetworkTracker tracker;
  tracker.OnEnvironment({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  tracker.OnEnvironment({{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}});
  tracker.OnEnvironment({{"PET_RDZV_ENDPOINT", "node2:29400"}});
  tracker.OnEnvironment({{"MASTER_PORT", "nonsense"}});
  tracker.OnCommand("torchrun --rdzv-endpoint=[fd00::1]:29401 --nnodes 2 x.py");
  tracker.OnCommand("python -m torch.distributed.run --master_addr node3 --master_port 29402 x.py");
  tracker.OnCommand("python x.py --dist-url tcp://10.0.0.1:23456 --other --init_method");
  std::vector<std::pair<std::string, int64_t>> found;
  for (const Coordinator& each : tracker.coordinators()) found.emplace_back(each.host, each.port);
  const std::vector<std::pair<std::string, int64_t>> expected = {{"node1", 29500},
                                                                 {"node2", 29400},
                                                                 {"fd00::1", 29401},
                                                                 {"node3", 29402},
                                                                 {"10.0.0.1", 23456}};
  EXPECT_EQ(found, expected);
}

TEST(NetworkTracker, SurvivesDamagedBytes) {
  NetworkTracker tracker;
  tracker.OnEvent(Connect("h:29500", "refused", 1), Of(0), {100});
  tracker.OnCommand("torchrun --master_port 29402 x.py");
  ArchiveWriter writer;
  writer(tracker);
  std::string bytes = writer.Take();
  ArchiveReader whole(bytes);
  NetworkTracker same;
  whole(same);
  EXPECT_TRUE(whole.Complete());
  EXPECT_EQ(same.contacts().size(), 1u);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    ArchiveReader reader(damaged);
    NetworkTracker other;
    reader(other);
    EXPECT_LE(other.contacts().size(), NetworkTracker::kMost);
  }
}

}  // namespace
}  // namespace rankscope::windows
