// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_workers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>

#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

constexpr uint32_t kUser = 61001;
constexpr uint32_t kOther = 61002;
constexpr uint32_t kGroup = 61100;

std::string Status(uint32_t effective, const char* groups) {
  const std::string uid = std::to_string(kUser);
  return "Name:\tUid:\nUmask:\t0022\nUid:\t" + uid + "\t" + std::to_string(effective) + "\t" + uid +
         "\t" + uid + "\nGid:\t7\t7\t7\t7\nFDSize:\t64\nGroups:\t" + groups + "\nNStgid:\t1\n";
}

TEST(UserIdentity, IsTheKernelsWord) {
  const auto who = ParseIdentity(Status(kUser, "12 4 "));
  ASSERT_TRUE(who);
  EXPECT_EQ(who->uid, kUser);
  EXPECT_EQ(who->gid, 7u);
  EXPECT_EQ(who->groups, (std::vector<uint32_t>{4, 12}));
  EXPECT_TRUE(ParseIdentity(Status(kUser, " "))->groups.empty());
}

TEST(UserIdentity, ASetUserIdProgramHasNone) {
  EXPECT_FALSE(ParseIdentity(Status(0, "")));
}

TEST(UserIdentity, NoneOfWhatIsNoStatus) {
  for (const char* text :
       {"", "Uid:\t1", "\nUid:\t1 1 1 1\n", "\nUid:\tx x x x\nGid:\t1 1 1 1\nGroups:\t\n",
        "\nUid:\t1 1 1\nGid:\t1 1 1 1\nGroups:\t\n"}) {
    EXPECT_FALSE(ParseIdentity(text)) << text;
  }
}

TEST(UserIdentity, OfThisProcessAndOfNoneThatHasGone) {
  std::ifstream file("/proc/self/stat");
  std::stringstream text;
  text << file.rdbuf();
  std::string rest = text.str().substr(text.str().rfind(')') + 2);
  std::stringstream fields(rest);
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const ProcessKey self{getpid(), std::stoll(field)};
  ASSERT_TRUE(ReadIdentity("/proc", self));
  EXPECT_EQ(ReadIdentity("/proc", self)->uid, getuid());
  EXPECT_FALSE(ReadIdentity("/proc", {getpid(), self.start_ticks + 1})) << "another had the number";
  EXPECT_FALSE(ReadIdentity("/proc", {0x7fffffff, 1}));
}

class UserWorkersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
    char folder[] = "/tmp/rankscope_users_XXXXXX";
    folder_ = mkdtemp(folder);
    chmod(folder_.c_str(), 0755);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string File(const char* name, uint32_t uid, uint32_t gid, mode_t mode) {
    const std::string path = folder_ + '/' + name;
    std::ofstream(path) << "text\n";
    EXPECT_EQ(chown(path.c_str(), uid, gid), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  // What errno opening it as this user leaves.
  int Open(UserIdentity who, const std::string& path) {
    int outcome = -1;
    On(std::move(who), [&] {
      const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      outcome = file ? 0 : errno;
    });
    return outcome;
  }

  void On(UserIdentity who, std::function<void()> work) {
    ASSERT_TRUE(workers_.Submit(std::move(who),
                                [this, work = std::move(work)]() -> std::function<void()> {
                                  work();
                                  return [this] { loop_.Stop(); };
                                },
                                Seconds(60), {}));
    loop_.Run();
  }

  EventLoop loop_;
  UserWorkers workers_{loop_};
  std::string folder_;
};

TEST_F(UserWorkersTest, AFileIsReadByWhoMayReadIt) {
  const std::string own = File("own", kUser, kUser, 0600);
  const std::string roots = File("roots", 0, 0, 0600);
  EXPECT_EQ(Open({kUser}, own), 0);
  EXPECT_EQ(Open({kOther}, own), EACCES);
  EXPECT_EQ(Open({kUser}, roots), EACCES);
  EXPECT_EQ(Open({0}, roots), 0);
  EXPECT_EQ(Open({0}, own), EACCES) << "root's rights are not used, only what root owns is root's";
  EXPECT_EQ(workers_.users(), 3u);
}

TEST_F(UserWorkersTest, GroupsAreThoseOfTheProcess) {
  const std::string shared = File("shared", kOther, kGroup, 0640);
  EXPECT_EQ(Open({kUser}, shared), EACCES);
  EXPECT_EQ(Open({kUser, kUser, {kGroup}}, shared), 0);
  EXPECT_EQ(Open({kUser, kGroup}, shared), 0);
  EXPECT_EQ(Open({kUser, kUser, {}}, shared), EACCES);
}

TEST_F(UserWorkersTest, AFolderThatOnlyRootMayEnterIsClosed) {
  const std::string path = File("own", kUser, kUser, 0644);
  chmod(folder_.c_str(), 0700);
  EXPECT_EQ(Open({kUser}, path), EACCES);
}

TEST_F(UserWorkersTest, TheThreadCanNeitherBeSignalledNorTakeRightsBack) {
  On({kUser}, [] {
    std::ifstream file("/proc/thread-self/status");
    std::stringstream text;
    text << file.rdbuf();
    const std::string status = text.str();
    EXPECT_NE(status.find("\nUid:\t0\t0\t0\t61001\n"), std::string::npos) << status;
    EXPECT_NE(status.find("\nCapEff:\t0000000000000000\n"), std::string::npos) << status;
    const size_t at = status.find("\nCapPrm:\t");
    const uint64_t permitted = std::stoull(status.substr(at + 9, 16), nullptr, 16);
    EXPECT_EQ(permitted & ~(1ull << 19), 0u) << "sys_ptrace at most: " << std::hex << permitted;
  });
  EXPECT_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1) << "as before";
}

TEST_F(UserWorkersTest, OneUserThatHangsDelaysNobodyElse) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  for (size_t i = 0; i < UserWorkers::kMaxPerUser; ++i) {
    ASSERT_TRUE(workers_.Submit(UserIdentity{kUser, kUser, {static_cast<uint32_t>(i)}},
                                [released]() -> std::function<void()> {
                                  released.wait();
                                  return {};
                                },
                                Seconds(60), {}));
  }
  EXPECT_FALSE(workers_.Submit(UserIdentity{kUser, kUser, {99}},
                               [] { return std::function<void()>(); }, Seconds(60), {}))
      << "his threads are all busy";
  bool ran = false;
  On({kOther}, [&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_EQ(workers_.pending(kUser), static_cast<int>(UserWorkers::kMaxPerUser));
  EXPECT_EQ(workers_.pending(kOther), 0);
  release.set_value();
}

TEST_F(UserWorkersTest, IdleThreadsMakeRoom) {
  for (uint32_t i = 0; i < UserWorkers::kMaxUsers + 5; ++i) On({kUser + i}, [] {});
  EXPECT_EQ(workers_.users(), UserWorkers::kMaxUsers);
}

}  // namespace
}  // namespace rankscope::exporter
