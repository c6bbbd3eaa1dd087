// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait_book.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "exporter/loop/command.h"
#include "exporter/probes/wait/hang_watch.h"
#include "exporter/probes/wait/python_stack.h"

namespace rankscope::probes {
namespace {

constexpr ProcessKey kProcess{10, 1};

ThreadTimes Thread(int32_t tid, WaitClass state, double since, double running) {
  ThreadTimes thread;
  thread.tid = tid;
  thread.tgid = kProcess.pid;
  thread.state = state;
  thread.since = thread.counted_to = {Seconds(since).ns};
  thread.spent[0] = Seconds(running);
  return thread;
}

double Value(const std::vector<Sample>& samples, SignalId signal) {
  for (const Sample& sample : samples) {
    if (sample.signal == signal) return sample.value;
  }
  return -1;
}

TEST(WaitBook, ThreadsAddUpAndTheMainOneStandsAlone) {
  WaitBook book;
  const std::vector<ThreadTimes> threads = {Thread(10, WaitClass::kFutex, 4, 2),
                                            Thread(11, WaitClass::kRunning, 9, 3)};
  book.Update({kProcess}, threads, {Seconds(10).ns});
  const auto samples = book.TakeSamples(kProcess);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kRunningSeconds), 2 + 3 + 1);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kWaitFutexSeconds), 6);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kMainRunningSeconds), 2);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kMainWaitSeconds), 6);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kMainWaitClass), 2);
}

TEST(WaitBook, TotalsDoNotFallWhenAThreadEnds) {
  WaitBook book;
  ThreadTimes second = Thread(11, WaitClass::kOther, 9, 3);
  book.Update({kProcess}, std::vector{Thread(10, WaitClass::kFutex, 4, 2), second},
              {Seconds(10).ns});
  second.ended = true;
  book.Update({kProcess}, std::vector{Thread(10, WaitClass::kFutex, 4, 2), second},
              {Seconds(11).ns});
  book.Update({kProcess}, std::vector{Thread(10, WaitClass::kFutex, 4, 2)}, {Seconds(12).ns});
  EXPECT_DOUBLE_EQ(book.Find(kProcess)->seconds[0], 5);
  EXPECT_EQ(book.Find(kProcess)->threads, 1);
}

TEST(WaitBook, OnlyNewsAreTold) {
  WaitBook book;
  const std::vector<ThreadTimes> threads = {Thread(10, WaitClass::kFutex, 4, 2)};
  book.Update({kProcess}, threads, {Seconds(10).ns});
  book.TakeSamples(kProcess);
  book.Update({kProcess}, threads, {Seconds(11).ns});
  const auto samples = book.TakeSamples(kProcess);
  EXPECT_EQ(Value(samples, SignalId::kRunningSeconds), -1) << "it did not run";
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kWaitFutexSeconds), 7);
  EXPECT_DOUBLE_EQ(Value(samples, SignalId::kMainWaitClass), 2) << "the sign that it lives";
}

TEST(WaitBook, AnotherOwnerOfThePidBeginsAnew) {
  WaitBook book;
  book.Update({kProcess}, std::vector{Thread(10, WaitClass::kFutex, 4, 2)}, {Seconds(10).ns});
  const ProcessKey next{10, 2};
  book.Update({next}, std::vector<ThreadTimes>{}, {Seconds(11).ns});
  EXPECT_EQ(book.Find(kProcess), nullptr);
  EXPECT_EQ(book.Find(next), nullptr) << "no thread of it is known yet";
}

class Watched : public ::testing::Test {
 protected:
  // Lets a second pass in which the process runs for so long, and without a wait for so long.
  bool Second(double running, double silent = 0) {
    times_.seconds[0] += running;
    times_.silent_seconds += silent;
    now_ = now_ + Seconds(1);
    return watch_.Due(kProcess, times_, now_);
  }
  int Looks(int seconds, double running, double silent = 0) {
    int looks = 0;
    for (int i = 0; i < seconds; ++i) looks += Second(running, silent) ? 1 : 0;
    return looks;
  }
  HangWatch watch_;
  ProcessTimes times_;
  Timestamp now_{Seconds(100).ns};
};

TEST_F(Watched, AStandstillIsLookedAtAFewTimes) {
  EXPECT_EQ(Looks(10, 0.5), 0) << "it works";
  EXPECT_EQ(Looks(15, 0), 0) << "a pause";
  EXPECT_EQ(Looks(10, 0), 1);
  EXPECT_EQ(Looks(600, 0), 2) << "and not for ever";
  EXPECT_EQ(Looks(5, 0.5), 0);
  EXPECT_EQ(Looks(30, 0), 1) << "the next standstill";
}

TEST_F(Watched, WhoHasNeverWorkedWaitsInPeace) {
  EXPECT_EQ(Looks(600, 0.001), 0);
}

TEST_F(Watched, AWorkerThatNeverWaitsIsLookedAtToo) {
  EXPECT_EQ(Looks(60, 1, 0.5), 0);
  EXPECT_EQ(Looks(30, 1, 1), 1);
}

constexpr std::string_view kDump = R"(Process 4711: /usr/bin/python3 -u train.py --token secret
Python v3.11.2 (/usr/bin/python3.11)

Thread 4720 (idle): "QueueFeederThread"
    wait (threading.py:320)
Thread 4711 (active): "MainThread"
    poll (/usr/lib/python3.11/multiprocessing/connection.py:257)
    _try_get_data (/usr/lib/python3/dist-packages/torch/utils/data/dataloader.py:1120)
    __next__ (torch/utils/data/dataloader.py:628)
    main (/home/u/secret project/train.py:12)
    <module> (train.py:40)
Thread 4725 (idle)
    other (x.py:1)
)";

TEST(PythonStack, TheMainThreadsFramesByModuleAndFunction) {
  const std::vector<std::string> frames = MainFrames(kDump);
  const std::vector<std::string> expected = {
      "multiprocessing.connection:poll", "torch.utils.data.dataloader:_try_get_data",
      "torch.utils.data.dataloader:__next__", "train:main", "train:<module>"};
  EXPECT_EQ(frames, expected) << "no folders, no arguments";
  EXPECT_TRUE(MainFrames("").empty());
  EXPECT_TRUE(MainFrames("Error: Failed to get process\n").empty());
}

TEST(PythonStack, WhatTakesTooLongOrFailsIsNothing) {
  const std::string folder = "/tmp/rankscope_py_spy_" + std::to_string(getpid());
  mkdir(folder.c_str(), 0700);
  EXPECT_EQ(exporter::FindProgram("py-spy", {folder}), "");
  const std::string path = folder + "/py-spy";
  const auto script = [&path](const std::string& text) {
    std::ofstream(path) << "#!/bin/sh\n" << text;
    chmod(path.c_str(), 0700);
  };
  script("echo \"$@\"\n");
  ASSERT_EQ(exporter::FindProgram("py-spy", {"/nonexistent", folder}), path);
  EXPECT_EQ(DumpPython(path, 12, Seconds(5)), "dump --nonblocking --pid 12\n");
  script("echo half; exec sleep 30\n");
  EXPECT_EQ(DumpPython(path, 12, Milliseconds(200)), "");
  script("echo half; exit 1\n");
  EXPECT_EQ(DumpPython(path, 12, Seconds(5)), "");
  script("yes\n");
  EXPECT_EQ(DumpPython(path, 12, Seconds(5)), "") << "more than anybody needs";
  EXPECT_EQ(DumpPython("/nonexistent/py-spy", 12, Seconds(5)), "");
  unlink(path.c_str());
  rmdir(folder.c_str());
}

}  // namespace
}  // namespace rankscope::probes
