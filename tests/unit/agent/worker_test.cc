// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace rankscope::exporter {
namespace {

TEST(Worker, RunsJobsInOrderAndDeliversOnTheLoopThread) {
  EventLoop loop;
  Worker worker(loop);
  const std::thread::id loop_thread = std::this_thread::get_id();
  std::vector<int> seen;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(worker.Submit(
        [&, i]() -> std::function<void()> {
          EXPECT_NE(std::this_thread::get_id(), loop_thread);
          return [&, i] {
            EXPECT_EQ(std::this_thread::get_id(), loop_thread);
            seen.push_back(i);
            if (i == 9) loop.Stop();
          };
        },
        Seconds(60), [] { ADD_FAILURE() << "not late"; }));
  }
  loop.Run();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(worker.pending(), 0);
}

TEST(Worker, AJobPastItsDeadlineIsReportedOnceAndItsResultStillComes) {
  EventLoop loop;
  Worker worker(loop);
  std::promise<void> release;
  int late = 0;
  bool delivered = false;
  ASSERT_TRUE(worker.Submit(
      [&]() -> std::function<void()> {
        release.get_future().wait();
        return [&] {
          delivered = true;
          loop.Stop();
        };
      },
      Milliseconds(5),
      [&] {
        ++late;
        release.set_value();
      }));
  loop.Run();
  EXPECT_EQ(late, 1);
  EXPECT_TRUE(delivered);
}

TEST(Worker, AStuckThreadIsLeftBehindAndItsResultDropped) {
  EventLoop loop;
  std::promise<void> begun;  // a job that nobody has begun would be dropped instead
  std::promise<void> release;
  std::promise<void> done;
  bool delivered = false;
  {
    Worker worker(loop);
    ASSERT_TRUE(worker.Submit(
        [&]() -> std::function<void()> {
          begun.set_value();
          release.get_future().wait();
          done.set_value();
          return [&] { delivered = true; };
        },
        Milliseconds(1), [&] { loop.Stop(); }));
    loop.Run();
    begun.get_future().wait();
  }  // must not hang
  release.set_value();
  done.get_future().wait();
  loop.After(Milliseconds(5), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(delivered);
}

TEST(Worker, AFullQueueRefuses) {
  EventLoop loop;
  Worker worker(loop);
  std::promise<void> release;
  ASSERT_TRUE(worker.Submit(
      [&]() -> std::function<void()> {
        release.get_future().wait();
        return {};
      },
      Seconds(60), {}));
  for (int i = 1; i < Worker::kMaxQueued; ++i) {
    ASSERT_TRUE(worker.Submit([]() -> std::function<void()> { return {}; }, Seconds(60), {}));
  }
  EXPECT_FALSE(worker.Submit([]() -> std::function<void()> { return {}; }, Seconds(60), {}));
  release.set_value();
}

TEST(Worker, ManyThatHangAreWaitedForSideBySide) {
  EventLoop loop;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < 10; ++i) {
    workers.push_back(std::make_unique<Worker>(loop));
    ASSERT_TRUE(workers.back()->Submit(
        [released]() -> std::function<void()> {
          released.wait();
          return [] { ADD_FAILURE() << "delivered after the stop"; };
        },
        Seconds(60), {}));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& worker : workers) {
    worker->BeginStop();
    EXPECT_EQ(worker->pending(), 0);
    EXPECT_FALSE(worker->Submit([] { return std::function<void()>(); }, Seconds(60), {}));
  }
  workers.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));  // ten take two
  release.set_value();
}

}  // namespace
}  // namespace rankscope::exporter
