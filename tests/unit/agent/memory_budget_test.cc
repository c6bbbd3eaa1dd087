// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/memory_budget.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_directory.h"

namespace rankscope::exporter {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryBudgetTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void WriteV1(int64_t usage, int64_t cache) {
    Write("cgroups/memory/system/x/memory.usage_in_bytes", std::to_string(usage) + "\n");
    Write("cgroups/memory/system/x/memory.stat",
          "cache 1\nrss 2\ntotal_cache " + std::to_string(cache) + "\n");
  }
  MemoryBudget Make(int64_t configured = 0) {
    return MemoryBudget(
        {configured, otherwise_, folder_.path() + "/self", folder_.path() + "/cgroups"});
  }

  TemporaryDirectory folder_;
  int64_t otherwise_ = 0;
};

TEST_F(MemoryBudgetTest, NoLimitAllowsEverything) {
  Write("self/cgroup", "0::/system/x\n");
  Write("cgroups/system/x/memory.max", "max\n");
  MemoryBudget budget = Make();
  EXPECT_EQ(budget.limit(), 0);
  EXPECT_EQ(budget.JobsAllowed(200, 256), 256u);
  EXPECT_FALSE(budget.high());
  otherwise_ = 1 << 20;
  Write("self/statm", "100000 20480 5120 1 0 1 0\n");
  MemoryBudget sane = Make();
  EXPECT_EQ(sane.limit(), 1 << 20);
  EXPECT_EQ(sane.JobsAllowed(200, 256), 174u);
}

TEST_F(MemoryBudgetTest, TheLowestLimitAboveCountsInV2) {
  Write("self/cgroup", "0::/system/x\n");
  Write("cgroups/system/x/memory.max", std::to_string(200 * kMiB) + "\n");
  Write("cgroups/system/memory.max", std::to_string(100 * kMiB) + "\n");
  Write("cgroups/system/memory.current", std::to_string(95 * kMiB) + "\n");
  Write("cgroups/system/memory.stat",
        "anon " + std::to_string(55 * kMiB) + "\nfile " + std::to_string(40 * kMiB) + "\n");
  MemoryBudget budget = Make();
  EXPECT_EQ(budget.limit(), 100 * kMiB);
  EXPECT_EQ(budget.JobsAllowed(200, 256), 256u) << "pages of files can be taken back";
  EXPECT_EQ(budget.used(), 55 * kMiB);
}

TEST_F(MemoryBudgetTest, FewerJobsWhileItIsShortAndMoreAgainAfterwards) {
  Write("self/cgroup", "3:cpu:/y\n5:memory:/system/x\n0::/\n");
  Write("cgroups/memory/system/x/memory.limit_in_bytes", std::to_string(100 * kMiB) + "\n");
  Write("cgroups/memory/system/memory.limit_in_bytes", "9223372036854771712\n");
  WriteV1(85 * kMiB, 0);
  MemoryBudget budget = Make();
  EXPECT_EQ(budget.limit(), 100 * kMiB);
  EXPECT_EQ(budget.JobsAllowed(80, 256), 69u);
  EXPECT_TRUE(budget.high());
  EXPECT_EQ(budget.Words(), "85 of 100 MiB of memory are in use");
  EXPECT_EQ(budget.JobsAllowed(1, 256), 1u) << "one is always watched";
  WriteV1(85 * kMiB, 30 * kMiB);
  EXPECT_EQ(budget.JobsAllowed(60, 256), 64u);
  EXPECT_EQ(budget.JobsAllowed(60, 256), 68u);
  EXPECT_EQ(budget.JobsAllowed(250, 256), 254u);
  EXPECT_EQ(budget.JobsAllowed(254, 256), 256u);
}

TEST_F(MemoryBudgetTest, TheConfiguredLimitCountsTheProcess) {
  Write("self/statm", "100000 20480 5120 1 0 1 0\n");
  MemoryBudget budget = Make(64 * kMiB);
  EXPECT_EQ(budget.JobsAllowed(10, 256), 8u);
  EXPECT_EQ(budget.used(), int64_t{15360} * 4096);
}

}  // namespace
}  // namespace rankscope::exporter
