// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/door.h"

#include <gtest/gtest.h>

#include <vector>

namespace rankscope::exporter {
namespace {

struct Passage {
  EventLoop loop;
  std::vector<Observation> passed;
  std::vector<SourceState> states;
  Door door{7, "n1", loop, [this](const Observation& o) { passed.push_back(o); },
            [this](const SourceState& s) { states.push_back(s); }};
};

TEST(Door, StampsWhatTheSourceLeftOpenAndKeepsWhatItSet) {
  Passage p;
  Observation observation;
  observation.kind = ProcessExit{};
  p.door.Accept(observation);
  p.door.Accept(observation);
  observation.t = {42};
  observation.seq = 9;
  p.door.Accept(observation);
  ASSERT_EQ(p.passed.size(), 3u);
  EXPECT_GT(p.passed[0].t.ns, 0);
  EXPECT_EQ(p.passed[0].source, 7u);
  EXPECT_EQ(p.passed[0].node, "n1");
  EXPECT_GE(p.passed[0].seq, Door::kFirstOwnSeq);
  EXPECT_GT(p.passed[1].seq, p.passed[0].seq);
  EXPECT_EQ(p.passed[2].t.ns, 42);
  EXPECT_EQ(p.passed[2].seq, 9);
  EXPECT_EQ(p.door.accepted(), 3);
}

TEST(Door, ASourcesWordAboutItselfGoesToItsKeeper) {
  Passage p;
  Observation observation;
  SourceState state;
  state.state = Availability::kDenied;
  observation.kind = state;
  p.door.Accept(observation);
  EXPECT_TRUE(p.passed.empty());
  ASSERT_EQ(p.states.size(), 1u);
  EXPECT_EQ(p.states[0].state, Availability::kDenied);
}

TEST(Door, SecretsOfArgumentsAndEnvironmentDoNotPass) {
  Passage p;
  Observation observation;
  ProcessStart start;
  start.argv = {"train.py", "--api-key=hunter2hunter2", "--password", "correcthorse", "--lr",
                "0.1"};
  start.env = {{"WANDB_API_KEY", "0123456789abcdef"}, {"RANK", "3"}};
  observation.kind = start;
  p.door.Accept(observation);
  const auto& masked = std::get<ProcessStart>(p.passed[0].kind);
  EXPECT_EQ(masked.argv[0], "train.py");
  EXPECT_EQ(masked.argv[1].find("hunter2"), std::string::npos) << masked.argv[1];
  EXPECT_EQ(masked.argv[1].substr(0, 10), "--api-key=");
  EXPECT_EQ(masked.argv[3].find("correct"), std::string::npos) << masked.argv[3];
  EXPECT_EQ(masked.argv[4], "--lr");
  EXPECT_EQ(masked.argv[5], "0.1");
  EXPECT_EQ(masked.env[0].value.find("0123"), std::string::npos);
  EXPECT_EQ(masked.env[1].value, "3");
}

}  // namespace
}  // namespace rankscope::exporter
