// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/disk_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace rankscope::exporter {
namespace {

TEST(DiskThread, RunsJobsInOrderAndDeliversOnTheLoop) {
  EventLoop loop;
  DiskThread disk(loop);
  std::vector<int> ran, heard;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(disk.Submit([&, i]() -> std::function<void()> {
      ran.push_back(i);
      return [&, i] {
        heard.push_back(i);
        if (i == 9) loop.Stop();
      };
    }));
  }
  EXPECT_TRUE(disk.Drain(Seconds(60)));
  EXPECT_EQ(ran.size(), 10u);
  EXPECT_TRUE(heard.empty()) << "results are the loop's";
  loop.Run();
  EXPECT_EQ(heard, ran);
  EXPECT_EQ(disk.behind().ns, 0);
}

// Hangs until it is let go, as a disk does.
struct Hang {
  std::promise<void> begun, go;
  DiskThread::Job Job() {
    return [this]() -> std::function<void()> {
      begun.set_value();
      go.get_future().wait();
      return nullptr;
    };
  }
};

TEST(DiskThread, ADiskThatHangsKeepsNobodyWaitingAndTheQueueIsBounded) {
  EventLoop loop;
  DiskThread disk(loop, {3, 1000});
  Hang hang;
  ASSERT_TRUE(disk.Submit(hang.Job()));
  hang.begun.get_future().wait();
  EXPECT_FALSE(disk.Drain(Milliseconds(1)));
  EXPECT_GT(disk.behind().ns, 0);
  const auto nothing = []() -> std::function<void()> { return nullptr; };
  EXPECT_TRUE(disk.Submit(nothing, 600));
  EXPECT_FALSE(disk.Submit(nothing, 600)) << "1000 bytes";
  EXPECT_TRUE(disk.Submit(nothing, 100));
  EXPECT_TRUE(disk.Submit(nothing));
  EXPECT_FALSE(disk.Submit(nothing)) << "3 jobs";
  hang.go.set_value();
  EXPECT_TRUE(disk.Drain(Seconds(60)));
  EXPECT_TRUE(disk.Submit(nothing, 5000)) << "what is larger than all room, alone";
  EXPECT_TRUE(disk.Drain(Seconds(60)));
  EXPECT_TRUE(disk.Submit(nothing, 600)) << "room was given back";
}

TEST(DiskThread, StopRunsWhatWaits) {
  EventLoop loop;
  DiskThread disk(loop);
  int ran = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(disk.Submit([&]() -> std::function<void()> {
      ++ran;
      return nullptr;
    }));
  }
  disk.Stop(Seconds(60));
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(disk.Submit([]() -> std::function<void()> { return nullptr; }));
}

TEST(DiskThread, AThreadThatHangsIsLeftBehind) {
  auto hang = std::make_shared<Hang>();
  auto later = std::make_shared<std::atomic<bool>>(false);
  std::promise<void> over;
  {
    EventLoop loop;
    DiskThread disk(loop);
    ASSERT_TRUE(disk.Submit([hang, &over]() -> std::function<void()> {
      hang->Job()();
      over.set_value();
      return [] { ADD_FAILURE() << "nobody is there to hear it"; };
    }));
    hang->begun.get_future().wait();
    ASSERT_TRUE(disk.Submit([later]() -> std::function<void()> {
      *later = true;
      return nullptr;
    }));
    disk.Stop(Milliseconds(10));
  }
  hang->go.set_value();
  over.get_future().wait();
  EXPECT_FALSE(*later) << "what waited was dropped";
}

}  // namespace
}  // namespace rankscope::exporter
