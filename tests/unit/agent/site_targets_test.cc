// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/site_targets.h"

#include <gtest/gtest.h>

#include "detectors/model/event_types.h"

namespace rankscope::exporter {
namespace {

const std::vector<std::string> kTargets = {"gpu:tokens_per_second=12000", "gpu:mfu=0.35",
                                           "gpu-debug:mfu=0.1"};

SchedulerRecord In(std::string partition) {
  SchedulerRecord record;
  record.job_id = "4711";
  record.partition = std::move(partition);
  return record;
}

TEST(SiteTargets, AJobHasThoseOfItsPartition) {
  const std::vector<Event> events = TargetsOf(In("gpu"), kTargets);
  ASSERT_EQ(events.size(), 2u);
  for (const Event& event : events) {
    EXPECT_EQ(event.type, WireType(EventType::kTarget));
    EXPECT_EQ(event.rank.job_id, "4711");
  }
  EXPECT_EQ(events[0].str[0].value, "tokens_per_second");
  EXPECT_EQ(events[0].str[1].value, "12000");
  EXPECT_EQ(events[0].str[2].value, "gpu");
  EXPECT_EQ(events[1].str[1].value, "0.35");
}

TEST(SiteTargets, OthersHaveNone) {
  for (const char* partition : {"", "gp", "gpu-", "cpu"})
    EXPECT_TRUE(TargetsOf(In(partition), kTargets).empty()) << partition;
  EXPECT_TRUE(TargetsOf(In("gpu"), {}).empty());
}

}  // namespace
}  // namespace rankscope::exporter
