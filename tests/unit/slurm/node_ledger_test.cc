// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/node_ledger.h"

#include <gtest/gtest.h>

namespace rankscope::exporter::slurm {
namespace {

SlurmNode Node(std::string name, std::string state, std::vector<std::string> flags = {},
               std::string reason = {}, int64_t since = 0) {
  SlurmNode node;
  node.name = std::move(name);
  node.state = std::move(state);
  node.state_flags = std::move(flags);
  node.reason = std::move(reason);
  node.reason_since = since;
  node.gpus = 8;
  return node;
}

std::string Told(const std::vector<SlurmEvent>& events) {
  std::string told;
  for (const SlurmEvent& event : events)
    told += event.node + " " + event.kind + "@" + std::to_string(event.wall_ns / 1'000'000'000) +
            " " + event.was + ">" + event.is + ";";
  return told;
}

TEST(NodeLedger, DownAndUpAgainWithTheTimeThatSlurmSays) {
  NodeLedger ledger;
  EXPECT_EQ(Told(ledger.Update({Node("n1", "IDLE"), Node("n2", "ALLOCATED")}, 100, "scontrol")),
            "");
  const auto down = ledger.Update(
      {Node("n1", "IDLE"), Node("n2", "DOWN", {}, "Not responding", 125)}, 130, "scontrol");
  EXPECT_EQ(Told(down), "n2 node_down@125 up>down;");
  ASSERT_FALSE(down[0].facts.empty());
  EXPECT_EQ(down[0].facts[0].key, "class");
  EXPECT_EQ(down[0].facts[0].value, "not_responding");
  EXPECT_EQ(Told(ledger.Update({Node("n1", "IDLE"), Node("n2", "DOWN", {}, "Not responding", 125)},
                               160, "scontrol")),
            "");
  EXPECT_EQ(Told(ledger.Update({Node("n1", "IDLE"), Node("n2", "IDLE")}, 190, "scontrol")),
            "n2 node_up@190 down>up;");
  const auto states = ledger.States();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].down_seconds, 0);
  EXPECT_EQ(states[1].down_seconds, 60);
  EXPECT_EQ(states[1].state, "up");
  EXPECT_EQ(states[1].gpus, 8);
}

TEST(NodeLedger, DrainingIsCountedApartAndAnotherReasonIsTold) {
  NodeLedger ledger;
  EXPECT_EQ(Told(ledger.Update({Node("n1", "ALLOCATED", {"DRAIN"}, "[HC] GPU 3 lost", 50)}, 100,
                               "scontrol")),
            "n1 node_drain@50 >draining;");
  EXPECT_EQ(
      Told(ledger.Update({Node("n1", "IDLE", {"DRAIN"}, "[HC] GPU 3 lost", 50)}, 130, "scontrol")),
      "")
      << "from draining to drained nothing new has happened";
  EXPECT_EQ(Told(ledger.Update({Node("n1", "IDLE", {"DRAIN"}, "RMA", 150)}, 160, "scontrol")),
            "n1 node_drain@150 drained>drained;");
  EXPECT_EQ(ledger.States()[0].drain_seconds, 60);
  EXPECT_EQ(ledger.States()[0].down_seconds, 0);
}

TEST(NodeLedger, RemembersWhatWasToldAndDoesNotTellItTwice) {
  NodeLedger before;
  const auto events =
      before.Update({Node("n2", "DOWN", {}, "Not responding", 125)}, 130, "scontrol");
  ASSERT_EQ(events.size(), 1u);
  NodeLedger ledger;
  ledger.Remember(events[0]);
  EXPECT_TRUE(ledger.States().empty()) << "not looked at yet";
  EXPECT_EQ(Told(ledger.Update({Node("n2", "DOWN", {}, "Not responding", 125)}, 400, "scontrol")),
            "");
  EXPECT_EQ(ledger.States()[0].down_seconds, 0) << "nobody looked meanwhile";
}

TEST(NodeLedger, AGapIsNotCounted) {
  NodeLedger ledger;
  ledger.Update({Node("n2", "DOWN")}, 100, "scontrol");
  ledger.Update({Node("n2", "DOWN")}, 100'000, "scontrol");
  EXPECT_EQ(ledger.States()[0].down_seconds, 0);
}

TEST(NodeLedger, OneThatIsTakenOutIsShownNoMore) {
  NodeLedger ledger;
  ledger.Update({Node("n1", "IDLE"), Node("n2", "IDLE")}, 100, "scontrol");
  ledger.Update({Node("n1", "IDLE")}, 130, "scontrol");
  ASSERT_EQ(ledger.States().size(), 1u);
  EXPECT_EQ(ledger.States()[0].name, "n1");
}

TEST(NodeLedger, WhatCannotBeReadChangesNothing) {
  NodeLedger ledger;
  ledger.Update({Node("n1", "IDLE")}, 100, "scontrol");
  EXPECT_EQ(Told(ledger.Update({Node("n1", ""), Node("", "DOWN")}, 130, "scontrol")), "");
}

}  // namespace
}  // namespace rankscope::exporter::slurm
