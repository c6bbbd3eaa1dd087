// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/thread_reader.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "exporter/probes/wait/thread_sampler.h"
#include "exporter/probes/wait/thread_snapshot.h"

namespace rankscope::probes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLocks =
    "1: FLOCK  ADVISORY  WRITE 14060 fe:00:10952875 0 EOF\n"
    "1: -> FLOCK  ADVISORY  WRITE 14238 fe:00:10952875 0 EOF\n"
    "1:  -> FLOCK  ADVISORY  WRITE 16943 fe:00:10952875 0 EOF\n"
    "2: POSIX  ADVISORY  READ 99 fe:00:7 0 EOF\n"
    "2: -> POSIX  ADVISORY  WRITE 100 fe:00:7 0 EOF\n";

TEST(ThreadReader, TheHolderOfALockStandsAboveWhoWaits) {
  EXPECT_EQ(FindLockHolder(kLocks, 14238), 14060);
  EXPECT_EQ(FindLockHolder(kLocks, 16943), 14060);
  EXPECT_EQ(FindLockHolder(kLocks, 100), 99);
  EXPECT_EQ(FindLockHolder(kLocks, 14060), 0) << "it holds, and waits for nobody";
  EXPECT_EQ(FindLockHolder("", 1), 0);
  EXPECT_EQ(FindLockHolder("1: -> FLOCK\n1:\n", 1), 0);
}

// A thread of this very process that waits in a pipe.
TEST(ThreadReader, ARealThreadInARealPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<pid_t> tid = 0;
  std::thread thread([&] {
    tid = static_cast<pid_t>(syscall(SYS_gettid));
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
  });
  const ThreadReader reader;
  std::optional<ThreadLook> look;
  for (int i = 0; i < 2000 && (!look || look->state != 'S' || !look->call); ++i) {
    usleep(1000);
    if (tid != 0) look = reader.Look(getpid(), tid);
  }
  ASSERT_TRUE(look);
  EXPECT_EQ(look->wait_class(), WaitClass::kSocket);
  EXPECT_EQ(look->file_kind, "pipe");
  EXPECT_EQ(CallName(look->call->number), "read");
  EXPECT_EQ(reader.Threads(getpid(), 8).front(), getpid()) << "the main thread first";
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  thread.join();
  close(ends[0]);
  close(ends[1]);
}

TEST(ThreadReader, WhoHasGoneIsNobody) {
  EXPECT_FALSE(ThreadReader("/nonexistent").Look(1, 1));
  EXPECT_TRUE(ThreadReader("/nonexistent").Threads(1, 8).empty());
  EXPECT_FALSE(TakeSnapshot(ThreadReader("/nonexistent"), "", {1, 1}));
}

// A /proc of one process whose only thread can be changed.
class Fake : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("rankscope_threads_" + std::to_string(getpid()));
    fs::create_directories(root_ / "7/task/7");
  }
  void TearDown() override { fs::remove_all(root_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / "7" / name) << text;
  }
  void Set(char state, const std::string& call, int64_t ran_ms, int64_t runnable_ms) {
    Write("task/7/stat",
          std::string("7 (train) ") + state +
              " 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
              "0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
    Write("task/7/syscall", call);
    Write("task/7/schedstat", std::to_string(ran_ms * 1'000'000) + " " +
                                  std::to_string(runnable_ms * 1'000'000) + " 1\n");
  }
  fs::path root_;
};

TEST_F(Fake, TimeGoesToWhereTheThreadIsSeen) {
  ThreadSampler sampler{ThreadReader(root_)};
  const std::string futex = std::to_string(SYS_futex) + " 0x1 0x0\n";
  Set('S', futex, 1000, 0);
  Timestamp now = {1'000'000'000};
  EXPECT_EQ(sampler.Sample({7}, now).front().Spent(WaitClass::kFutex, now).ns, 0);
  Set('S', futex, 1300, 100);  // 0.3 s on a CPU, 0.1 s in its queue
  now = now + Seconds(1);
  const ThreadTimes times = sampler.Sample({7}, now).front();
  EXPECT_EQ(times.spent[static_cast<size_t>(WaitClass::kRunning)], Milliseconds(300));
  EXPECT_EQ(times.spent[static_cast<size_t>(WaitClass::kRunnable)], Milliseconds(100));
  EXPECT_EQ(times.spent[static_cast<size_t>(WaitClass::kFutex)], Milliseconds(600));
  Set('S', futex, 1300, 100);
  now = now + Seconds(1);
  // When within the second before it began to wait is not known.
  EXPECT_EQ(sampler.Sample({7}, now).front().Waited(now), Seconds(1));
}

TEST_F(Fake, ARunWithoutAWaitIsSilent) {
  ThreadSampler sampler{ThreadReader(root_)};
  Timestamp now = {1'000'000'000};
  int64_t ran_ms = 0;
  for (int i = 0; i < 4; ++i) {
    Set('R', "running\n", ran_ms, 0);
    sampler.Sample({7}, now);
    now = now + Seconds(1);
    ran_ms += 1000;
  }
  Set('R', "running\n", ran_ms, 0);
  EXPECT_GE(sampler.Sample({7}, now).front().Silent(now), Seconds(3));
}

TEST_F(Fake, ASnapshotSaysWhereItStands) {
  Set('D', std::to_string(SYS_openat) + " 0x1 0x0\n", 0, 0);
  Write("task/7/wchan", "rpc_wait_bit_killable");
  Write("task/7/stack",
        "[<0>] rpc_wait_bit_killable+0x1e/0x90 [sunrpc]\n[<0>] nfs4_proc_open+0x1/0x2\n");
  const auto event = TakeSnapshot(ThreadReader(root_), "", {7, 5});
  ASSERT_TRUE(event);
  const auto text = [&event](std::string_view key) {
    for (const KeyValue& pair : event->str) {
      if (pair.key == key) return pair.value;
    }
    return std::string();
  };
  EXPECT_EQ(text("class"), "network_file");
  EXPECT_EQ(text("syscall"), "openat");
  EXPECT_EQ(text("stack"), "rpc_wait_bit_killable;nfs4_proc_open");
}

}  // namespace
}  // namespace rankscope::probes
