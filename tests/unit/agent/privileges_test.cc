// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/capability.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "exporter/daemon/sources.h"

namespace rankscope::exporter {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Config Defaults() {
  return DefaultConfig(SourceDefaults());
}

void SwitchOff(Config& config) {
  for (SourceSettings& source : config.sources) source.enabled = false;
}

std::string Line(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(line.find_last_of(" \t") + 1);
  }
  return {};
}

TEST(Privileges, EveryNameOfTheTableIsOne) {
  for (const std::string& name : NeededCapabilities(Defaults())) {
    cap_value_t value = 0;
    EXPECT_EQ(cap_from_name(("cap_" + name).c_str(), &value), 0) << name;
  }
}

TEST(Privileges, OnlyWhatEnabledSourcesNeed) {
  Config config = Defaults();
  EXPECT_THAT(NeededCapabilities(config), Contains("bpf"));
  config.ebpf.mode = "off";
  EXPECT_THAT(NeededCapabilities(config), Not(Contains("bpf")));
  EXPECT_THAT(NeededCapabilities(config), Contains("sys_ptrace"));
  SwitchOff(config);
  EXPECT_THAT(NeededCapabilities(config), IsEmpty());
}

TEST(Privileges, ProbesOfOldKernelsNeedMore) {
  Config config = Defaults();
  EXPECT_THAT(NeededCapabilities(config), Not(Contains("sys_admin")));
  EXPECT_THAT(NeededCapabilities(config, true), Contains("sys_admin"));
  config.ebpf.mode = "off";
  EXPECT_THAT(NeededCapabilities(config, true), Not(Contains("sys_admin")));
}

TEST(Privileges, LowPortsNeedARight) {
  Config config = Defaults();
  SwitchOff(config);
  config.web.listen = {"127.0.0.1:0", "0.0.0.0:443"};
  EXPECT_THAT(NeededCapabilities(config), ElementsAre("net_bind_service"));
  config.web.listen = {"127.0.0.1:1024"};
  EXPECT_THAT(NeededCapabilities(config), IsEmpty());
}

// In a child: what is given up does not come back.
TEST(Privileges, KeptOnesStayAndOthersGoForChildrenToo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<std::string> kept = {"net_admin", "sys_ptrace"};
    if (!KeepOnly(kept).ok()) _exit(1);
    const std::string expected = Line("/proc/self/status", "CapEff");
    if (std::stoull(expected, nullptr, 16) & ~(1ull << CAP_NET_ADMIN | 1ull << CAP_SYS_PTRACE)) {
      _exit(2);
    }
    if (Line("/proc/self/status", "CapPrm") != expected) _exit(3);
    const std::string command = "test $(grep CapEff /proc/self/status | cut -f2) = " + expected;
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rankscope::exporter
