// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/engine_state.h"

#include <gtest/gtest.h>

namespace rankscope::replay {
namespace {

TEST(EngineStateParts, ASmallStateIsOnePartAsItIs) {
  const auto parts = SplitEngineState({"0.1", "blob"});
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].build, "0.1");
  EXPECT_EQ(EngineStateJoiner().Add(parts[0])->blob, "blob");
  EXPECT_EQ(SplitEngineState({"0.1", ""}).size(), 1u);
}

TEST(EngineStateParts, ALargeOneComesTogetherAgain) {
  for (const size_t size : {10u, 11u, 19u, 20u, 21u, 95u}) {
    std::string blob;
    for (size_t i = 0; i < size; ++i) blob.push_back(static_cast<char>(i));
    const auto parts = SplitEngineState({"0.1;x", blob}, 10);
    ASSERT_EQ(parts.size(), (size + 9) / 10);
    EngineStateJoiner joiner;
    for (size_t i = 0; i + 1 < parts.size(); ++i) EXPECT_FALSE(joiner.Add(parts[i]));
    const auto whole = joiner.Add(parts.back());
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->build, "0.1;x");
    EXPECT_EQ(whole->blob, blob);
  }
}

TEST(EngineStateParts, PartsOutOfOrderGiveNothing) {
  const auto parts = SplitEngineState({"b", std::string(30, 'x')}, 10);
  EngineStateJoiner joiner;
  EXPECT_FALSE(joiner.Add(parts[0]));
  EXPECT_FALSE(joiner.Add(parts[2]));
  EXPECT_FALSE(joiner.Add(parts[1]));
  EXPECT_FALSE(joiner.Add(parts[2]));
  for (const char* build :
       {"b;part=0/2", "b;part=2/1", "b;part=1/999999999999", "b;part=-1/1", "b;part=2/2"}) {
    EXPECT_FALSE(joiner.Add({build, "x"})) << build;
  }
  // What only looks like a part is a build's name.
  for (const char* build : {"b;part=", "b;part=1", "b;part=1/", "b;part=x/y", "b;part=1/2z"}) {
    const auto whole = joiner.Add({build, "x"});
    ASSERT_TRUE(whole) << build;
    EXPECT_EQ(whole->build, build);
  }
}

TEST(EngineStateParts, AnotherBuildDoesNotContinue) {
  EngineStateJoiner joiner;
  EXPECT_FALSE(joiner.Add({"a;part=1/2", "x"}));
  EXPECT_FALSE(joiner.Add({"b;part=2/2", "y"}));
}

}  // namespace
}  // namespace rankscope::replay
