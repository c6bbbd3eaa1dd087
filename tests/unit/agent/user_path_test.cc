// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rankscope::exporter {
namespace {

TEST(MountInfo, IsReadByIdDeviceAndType) {
  const auto mounts = ParseMountInfo(
      "36 35 98:5 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
      "40 36 0:52 / /home/a\\040-\\040fuse rw - fuse.sshfs host: rw,user_id=1000\n"
      "broken\n41 36 7 / / - ext4 x\n42 36 0:3 / /x rw");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts.at(36).type, "ext3");
  EXPECT_EQ(mounts.at(36).device, uint64_t{98} << 32 | 5);
  EXPECT_EQ(mounts.at(40).type, "fuse.sshfs");
  EXPECT_FALSE(mounts.at(40).served_by_root);
  EXPECT_TRUE(ParseMountInfo(
                  "40 36 0:52 / /a rw - fuse.juicefs x rw,user_id=0,group_id=0,default_permissions")
                  .at(40)
                  .served_by_root);
}

class UserPathTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rankscope_path_XXXXXX";
    folder_ = mkdtemp(folder);
    std::filesystem::create_directories(folder_ + "/root/a/b");
    std::ofstream(folder_ + "/root/a/b/file") << "inside";
    std::ofstream(folder_ + "/secret") << "outside";
    root_ = OwnedFd(open((folder_ + "/root").c_str(), O_PATH | O_CLOEXEC));
    here_ = OwnedFd(open((folder_ + "/root/a").c_str(), O_PATH | O_CLOEXEC));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What it reads, or why it does not.
  std::string Read(const std::string& path) {
    const auto found = WalkUserPath(root_.get(), here_.get(), path, mounts_);
    if (!found) return found.error().empty() ? "none" : found.error();
    const OwnedFd file = OpenLooked(found->get());
    char text[64];
    const ssize_t size = file ? read(file.get(), text, sizeof text) : -1;
    return size < 0 ? "not to be read" : std::string(text, static_cast<size_t>(size));
  }
  void Link(const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, folder_ + "/root/" + name);
  }

  std::string folder_;
  OwnedFd root_;
  OwnedFd here_;
  UserMounts mounts_{"/proc", getpid()};
};

TEST_F(UserPathTest, PathsAreWalkedFromTheRootOrTheWorkingDirectory) {
  EXPECT_EQ(Read("/a/b/file"), "inside");
  EXPECT_EQ(Read("b/./file"), "inside");
  EXPECT_EQ(Read("..//a/b/file"), "inside");
  EXPECT_EQ(Read("b/none"), "none");
  EXPECT_EQ(Read("b/file/none"), "none");
}

TEST_F(UserPathTest, TheRootIsNotLeft) {
  EXPECT_EQ(Read("/../secret"), "none");
  EXPECT_EQ(Read("../../secret"), "none");
  Link("/a/b", "absolute");
  EXPECT_EQ(Read("/absolute/file"), "inside") << "within the root, as the process sees it";
  Link("../../..", "up");
  EXPECT_EQ(Read("/up/secret"), "none");
}

TEST_F(UserPathTest, LinksEnd) {
  Link("round", "round");
  EXPECT_EQ(Read("/round/file"), "Too many levels of symbolic links");
  Link("a/b/file", "last");
  const auto found = WalkUserPath(root_.get(), here_.get(), "/last", mounts_);
  ASSERT_TRUE(found);
  struct stat facts {};
  ASSERT_EQ(fstat(found->get(), &facts), 0);
  EXPECT_TRUE(S_ISLNK(facts.st_mode)) << "the last step is not followed";
}

TEST_F(UserPathTest, LinksOfProcAreNotFollowed) {
  const OwnedFd secret(open((folder_ + "/secret").c_str(), O_RDONLY | O_CLOEXEC));
  const OwnedFd top(open("/", O_PATH | O_CLOEXEC));
  root_ = OwnedFd(fcntl(top.get(), F_DUPFD_CLOEXEC, 0));
  const std::string fd =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(secret.get());
  const auto found = WalkUserPath(root_.get(), here_.get(), fd, mounts_);
  ASSERT_TRUE(found);
  struct stat facts {};
  ASSERT_EQ(fstat(found->get(), &facts), 0);
  EXPECT_TRUE(S_ISLNK(facts.st_mode));
}

TEST_F(UserPathTest, NoPaths) {
  EXPECT_EQ(Read(""), "not the path of a file");
  EXPECT_EQ(Read(std::string("a\0b", 3)), "not the path of a file");
  EXPECT_EQ(Read(std::string(5000, 'a')), "not the path of a file");
  std::string deep;
  for (int i = 0; i < 2000; ++i) deep += "b/";
  EXPECT_NE(Read(deep), "inside");
}

TEST_F(UserPathTest, WhatIsMountedNowhereIsNotTouched) {
  EXPECT_EQ(mounts_.Refusal(here_.get()), "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(
      mounts_.Refusal(ends[0]),
      "on a file system that is not mounted in the daemon's or the process's mount namespace");
  close(ends[0]);
  close(ends[1]);
  const OwnedFd memory(memfd_create("code", MFD_CLOEXEC));
  EXPECT_EQ(mounts_.Refusal(memory.get()), "") << "in no file system that anybody serves";
}

}  // namespace
}  // namespace rankscope::exporter
