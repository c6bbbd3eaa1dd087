// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

namespace rankscope::exporter {
namespace {

struct Pipe {
  int fds[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe(fds), 0); }
  ~Pipe() {
    close(fds[0]);
    close(fds[1]);
  }
  void Write() const { EXPECT_EQ(write(fds[1], "x", 1), 1); }
  void Read() const {
    char c = 0;
    EXPECT_EQ(read(fds[0], &c, 1), 1);
  }
};

TEST(EventLoop, RunsTimersInOrderOfTheirTime) {
  EventLoop loop;
  std::vector<int> seen;
  loop.After(Milliseconds(6), [&] {
    seen.push_back(3);
    loop.Stop();
  });
  loop.After(Milliseconds(2), [&] { seen.push_back(1); });
  loop.After(Milliseconds(4), [&] { seen.push_back(2); });
  loop.Run();
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

// However late the machine is: each call is of another time of the grid, and of those that pass
// while the first call sleeps, two at least are nobody's.
TEST(EventLoop, MissedTicksAreSkipped) {
  constexpr int64_t kEvery = 10'000'000;
  EventLoop loop;
  int64_t calls = 0;
  const Timestamp start = loop.Now();
  Timestamp last;
  loop.Every(Duration{kEvery}, [&] {
    last = loop.Now();
    if (++calls == 1) std::this_thread::sleep_for(std::chrono::milliseconds(35));
    if (calls == 10) loop.Stop();
  });
  loop.Run();
  EXPECT_LE(calls, (last - start).ns / kEvery - 2);
}

TEST(EventLoop, CancelledTimersDoNotRunEvenFromACallbackOfTheSameWakeUp) {
  EventLoop loop;
  bool ran = false;
  EventLoop::TimerId second = 0;
  loop.After(Milliseconds(1), [&] { loop.Cancel(second); });
  second = loop.After(Milliseconds(1), [&] { ran = true; });
  loop.After(Milliseconds(5), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(ran);
}

TEST(EventLoop, PostRunsInOrderFromAnotherThread) {
  EventLoop loop;
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  poster.join();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(EventLoop, WatchDeliversAndACallbackMayUnwatchItself) {
  EventLoop loop;
  Pipe pipe;
  int calls = 0;
  ASSERT_TRUE(loop.Watch(pipe.fds[0], EPOLLIN,
                         [&](uint32_t events) {
                           EXPECT_TRUE(events & EPOLLIN);
                           ++calls;
                           loop.Unwatch(pipe.fds[0]);
                           loop.After(Milliseconds(2), [&] { loop.Stop(); });
                         })
                  .ok());
  pipe.Write();
  loop.Run();
  EXPECT_EQ(calls, 1);  // still readable, no longer watched
}

TEST(EventLoop, AnEventForAnUnwatchedFdOfTheSameWakeUpIsDropped) {
  EventLoop loop;
  Pipe a;
  Pipe b;
  int calls = 0;
  const auto on_event = [&](uint32_t) {
    ++calls;
    a.Read();
    loop.Unwatch(a.fds[0]);
    loop.Unwatch(b.fds[0]);
    loop.Stop();
  };
  ASSERT_TRUE(loop.Watch(a.fds[0], EPOLLIN, on_event).ok());
  ASSERT_TRUE(loop.Watch(b.fds[0], EPOLLIN, on_event).ok());
  a.Write();
  b.Write();
  loop.Run();
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, WatchingABadFdIsAnErrorThatNamesIt) {
  EventLoop loop;
  const Status status = loop.Watch(-1, EPOLLIN, [](uint32_t) {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("fd -1"), std::string::npos);
}

EventLoop* signal_loop = nullptr;

TEST(EventLoop, StopWorksFromASignalHandler) {
  EventLoop loop;
  signal_loop = &loop;
  struct sigaction action {};
  action.sa_handler = [](int) { signal_loop->Stop(); };
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  loop.After(Milliseconds(1), [] { raise(SIGUSR1); });
  loop.Run();
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

TEST(EventLoop, StopBeforeRunReturnsAtOnce) {
  EventLoop loop;
  loop.Stop();
  loop.Run();
}

}  // namespace
}  // namespace rankscope::exporter
