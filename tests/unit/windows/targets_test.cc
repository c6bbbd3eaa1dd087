// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/targets.h"

#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

Event Told(std::string measure, std::string value, std::string partition = "") {
  Event event;
  event.str = {{"measure", std::move(measure)}, {"value", std::move(value)}};
  if (!partition.empty()) event.str.push_back({"partition", std::move(partition)});
  return event;
}

TEST(Targets, TheSitesStandUntilTheUserNamesHis) {
  Targets targets;
  targets.OnEvent(Told("tokens_per_second", "12000", "gpu"));
  targets.OnEvent(Told("mfu", "0.4", "gpu"));
  EXPECT_EQ(targets.value(Speed::kTokens), 12000);
  EXPECT_EQ(targets.value(Speed::kMfu), 0.4);
  EXPECT_EQ(targets.partition(), "gpu");
  targets.OnEvent(Told("tokens_per_second", "8000"));
  targets.OnEvent(Told("mfu", "0.4", "gpu"));
  EXPECT_EQ(targets.value(Speed::kTokens), 8000);
  EXPECT_EQ(targets.value(Speed::kMfu), 0) << "the user's stand instead of all of the site's";
  EXPECT_EQ(targets.partition(), "");
}

TEST(Targets, AnotherPartitionHasItsOwn) {
  Targets targets;
  targets.OnEvent(Told("mfu", "0.4", "gpu"));
  targets.OnEvent(Told("tokens_per_second", "900", "debug"));
  EXPECT_EQ(targets.value(Speed::kMfu), 0);
  EXPECT_EQ(targets.value(Speed::kTokens), 900);
  EXPECT_EQ(targets.partition(), "debug");
}

TEST(Targets, WhatIsNoTargetChangesNothing) {
  Targets targets;
  targets.OnEvent(Told("mfu", "0.4"));
  for (const char* value : {"", "-1", "0", "nan", "inf"}) targets.OnEvent(Told("mfu", value));
  targets.OnEvent(Told("speed", "3"));
  EXPECT_EQ(targets.value(Speed::kMfu), 0.4);
}

}  // namespace
}  // namespace rankscope::windows
