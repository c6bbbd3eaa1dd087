// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/root_process.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace rankscope::collectors {
namespace {

std::string Vector(const std::vector<uint64_t>& numbers) {
  std::string bytes(numbers.size() * sizeof(uint64_t), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(RootProcess, TheKernelNotesWhoRanTheProgram) {
  const auto plain =
      ParseAuxiliaryVector(Vector({AT_UID, 0, AT_EUID, 0, AT_SECURE, 0, AT_NULL, 0}));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->uid, 0u);
  EXPECT_FALSE(plain->secure);
  const auto taken = ParseAuxiliaryVector(Vector({AT_UID, 61002, AT_EUID, 0, AT_SECURE, 1}));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->uid, 61002u);
  EXPECT_TRUE(taken->secure);
}

TEST(RootProcess, NothingOfWhatIsNoNote) {
  EXPECT_FALSE(ParseAuxiliaryVector(""));
  EXPECT_FALSE(ParseAuxiliaryVector(Vector({AT_UID, 0})));
  EXPECT_FALSE(ParseAuxiliaryVector(Vector({AT_UID, 0, AT_SECURE, 0}).substr(0, 30)));
}

TEST(RootProcess, ACgroupMayNameAnotherUser) {
  EXPECT_TRUE(NamesAnotherUser("0::/user.slice/user-1000.slice/session-3.scope\n"));
  EXPECT_TRUE(NamesAnotherUser("4:memory:/slurm/uid_1000/job_5/step_0\n"));
  EXPECT_FALSE(NamesAnotherUser("0::/user.slice/user-0.slice/session-3.scope\n"));
  EXPECT_FALSE(
      NamesAnotherUser("4:memory:/slurm/uid_0/job_5/step_0\n0::/system.slice/user-manager\n"));
  EXPECT_FALSE(NamesAnotherUser(""));
}

TEST(RootProcess, NobodyThere) {
  EXPECT_FALSE(IsRootsOwn("/proc", {0x7fffffff, 1}));
  EXPECT_EQ(IsRootsOwn("/proc", {getpid(), 1}), geteuid() == 0);
}

}  // namespace
}  // namespace rankscope::collectors
