// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/output/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rankscope::collectors {
namespace {

// A child with the given files as standard output and error.
class Child {
 public:
  Child(int out, int err) {
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out, 1);
      dup2(err, 2);
      pause();
      _exit(0);
    }
    usleep(50'000);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  int32_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rankscope_output_XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/out";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<FoundOutput> Find(const Child& child, std::vector<OutputFileId> known = {}) {
    // Of a process that began a thousand years from now: every file is older.
    return FindOutputFiles("/proc", {child.pid(), kFarTicks}, Self(), known).found;
  }

  static OutputReader Self() { return {{getuid(), getgid(), {}}, false}; }

  static constexpr int64_t kFarTicks = int64_t{100} * 86400 * 365 * 1000;

  std::string folder_;
  std::string path_;
};

TEST_F(OutputFileTest, AFileThatTheProcessWritesIsOpened) {
  std::ofstream(path_) << "before\n";
  const int fd = open(path_.c_str(), O_WRONLY | O_APPEND);
  ASSERT_EQ(write(fd, "ours\n", 5), 5);
  const Child child(fd, fd);
  const auto found = Find(child);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, found[1].id);
  ASSERT_NE(found[0].file, nullptr);
  EXPECT_EQ(found[1].file, nullptr) << "opened once";
  EXPECT_EQ(found[0].begin, 12) << "appended to: what was there may be another job's";
  EXPECT_EQ(found[0].file->Read(7, 100), "ours\n");
  const auto young = FindOutputFiles("/proc", {child.pid(), 1}, Self(), {}).found;
  EXPECT_EQ(young[0].begin, 0) << "made since this process began";
  EXPECT_EQ(Find(child, {found[0].id})[0].file, nullptr);
  close(fd);
}

TEST_F(OutputFileTest, WhoDoesNotAppendBeganAtTheStart) {
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_EQ(write(fd, "ours\n", 5), 5);
  const Child child(fd, fd);
  ASSERT_EQ(Find(child).size(), 2u);
  EXPECT_EQ(Find(child)[0].begin, 0);
  close(fd);
}

TEST_F(OutputFileTest, OnlyRegularFilesThatMayBeWritten) {
  std::ofstream(path_) << "secret\n";
  const int readable = open(path_.c_str(), O_RDONLY);
  const int null = open("/dev/null", O_WRONLY);
  EXPECT_TRUE(Find(Child(readable, null)).empty());
  close(readable);
  close(null);
}

// Another user's file is the kernel's to refuse (see user_workers_test); root's rules are ours.
TEST_F(OutputFileTest, RootsOwnFilesOfItsOwnProcessesOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const int fd = open(path_.c_str(), O_WRONLY | O_CREAT, 0644);
  const Child child(fd, fd);
  EXPECT_EQ(Find(child).size(), 2u);
  ASSERT_EQ(fchmod(fd, 0600), 0);
  EXPECT_TRUE(Find(child).empty())
      << "others may not read it, and no scheduler says whose the job is";
  EXPECT_EQ(FindOutputFiles("/proc", {child.pid(), 1}, {{0}, true}, {}).found.size(), 2u);
  ASSERT_EQ(fchmod(fd, 0644), 0);
  ASSERT_EQ(fchown(fd, 61001, 61001), 0);
  EXPECT_TRUE(Find(child).empty()) << "another user's";
  EXPECT_NE(FindOutputFiles("/proc", {child.pid(), 1}, Self(), {}).refusal, "");
  close(fd);
}

TEST_F(OutputFileTest, NobodyThere) {
  EXPECT_TRUE(FindOutputFiles("/proc", {0x7fffffff, 0}, Self(), {}).found.empty());
  EXPECT_FALSE(ParseDescriptorFacts("nothing"));
}

}  // namespace
}  // namespace rankscope::collectors
