// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Names of users: nobody waits for a directory that does not answer, and none is lost when it goes
// away.
#include "exporter/loop/user_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rankscope::exporter {
namespace {

// Answers when it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int asked = 0;

  std::string Ask(uint32_t uid) {
    std::unique_lock lock(mutex);
    ++asked;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
    return "user" + std::to_string(uid);
  }
  void Open() {
    const std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  void UntilAsked(int times) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked >= times; });
  }
};

TEST(UserDirectory, KnowsWhoRunsTheTest) {
  UserDirectory users;
  EXPECT_EQ(users.Wait(geteuid(), Seconds(60)), NameInDatabase(geteuid()));
  EXPECT_EQ(users.Wait(-1, Seconds(60)), "");
  EXPECT_EQ(users.Wait(int64_t{1} << 32, Seconds(60)), "");
}

TEST(UserDirectory, NobodyWaitsForOneThatHangs) {
  const auto gate = std::make_shared<Gate>();
  UserDirectory users([gate](uint32_t uid) { return gate->Ask(uid); });
  EXPECT_EQ(users.Known(7), "");
  gate->UntilAsked(1);
  EXPECT_EQ(users.Known(7), "");
  EXPECT_EQ(users.Wait(7, Milliseconds(10)), "");
  EXPECT_EQ(users.Wait(8, Milliseconds(10)), "") << "behind the one that hangs";
  EXPECT_FALSE(users.Stop()) << "the thread is left behind";
  gate->Open();
}

TEST(UserDirectory, TellsOfANameThatComesLate) {
  const auto gate = std::make_shared<Gate>();
  UserDirectory users([gate](uint32_t uid) { return gate->Ask(uid); });
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int64_t> told;
  users.OnName([&](int64_t uid) {
    const std::lock_guard lock(mutex);
    told.push_back(uid);
    changed.notify_all();
  });
  EXPECT_EQ(users.Known(7), "");
  EXPECT_EQ(users.Known(8), "");
  gate->Open();
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return told.size() == 2; });
  lock.unlock();
  EXPECT_EQ(users.Known(7), "user7");
  EXPECT_EQ(users.Known(8), "user8");
  EXPECT_EQ(gate->asked, 2) << "once each";
}

TEST(UserDirectory, ANumberWithoutANameIsAnAnswer) {
  UserDirectory users([](uint32_t) { return std::string(); });
  EXPECT_EQ(users.Wait(7, Seconds(60)), "");  // at once
  EXPECT_EQ(users.Wait(7, Seconds(60)), "");
}

TEST(UserDirectory, HoldsABoundedNumber) {
  UserDirectory users([](uint32_t uid) { return std::to_string(uid); });
  for (int64_t uid = 0; uid < 2 * static_cast<int64_t>(UserDirectory::kMost); ++uid)
    users.Known(uid);
  EXPECT_EQ(users.Wait(5, Seconds(60)), "5");
}

}  // namespace
}  // namespace rankscope::exporter
