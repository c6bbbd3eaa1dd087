// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which files of a job that nobody has heard are read, and how much of them: real processes, whose
// places in the job the test tells.
#include "exporter/probes/stdio/left_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "exporter/processes/proc_text.h"

namespace rankscope::probes {
namespace {

using attribution::ProcessInfo;
using attribution::ProcessRole;

int64_t StartTicksOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const auto stat = collectors::ParseStat(text.str());
  return stat ? stat->start_ticks : 0;
}

class LeftOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rankscope_left_XXXXXX";
    folder_ = mkdtemp(folder);
  }
  void TearDown() override {
    for (const auto& [key, process] : processes_) {
      kill(key.pid, SIGKILL);
      waitpid(key.pid, nullptr, 0);
    }
    for (const int fd : files_) close(fd);
    std::filesystem::remove_all(folder_);
  }

  // Opened as `name`, with this text in it.
  int File(const std::string& name, const std::string& text, int flags = 0) {
    const int fd = open((folder_ + "/" + name).c_str(), O_WRONLY | O_CREAT | flags, 0644);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    files_.push_back(fd);
    return fd;
  }
  int Pipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    files_.push_back(ends[0]);
    files_.push_back(ends[1]);
    return ends[1];
  }

  // A process with these as its standard output and error.
  ProcessKey Start(ProcessRole role, int out, int err, ProcessKey parent = {},
                   const std::string& comm = "python") {
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(out, 1);
      dup2(err, 2);
      for (;;) pause();
    }
    // Until it has them: both lead to where they should.
    const auto leads = [pid](int number, int fd) {
      std::error_code error;
      const auto to = std::filesystem::read_symlink(
          "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number), error);
      return to == std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error);
    };
    while (!leads(1, out) || !leads(2, err)) usleep(1000);
    const ProcessKey key{pid, StartTicksOf(pid)};
    ProcessInfo process;
    process.key = key;
    process.parent = parent;
    process.comm = comm;
    process.job_id = "j1";
    process.role = role;
    process.rank = role == ProcessRole::kRank ? ranks_++ : -1;
    processes_[key] = process;
    collectors::TrackedProcess tracked;
    tracked.key = key;
    tracked.parent = parent;
    tracked.uid = getuid();
    EXPECT_TRUE(table_.Add(tracked));
    return key;
  }

  void Read() {
    LeftOutput::Hooks hooks;
    hooks.on_text = [this](LeftText text) { texts_.push_back(std::move(text)); };
    hooks.on_job = [this](const std::string& job_id) { read_ += job_id; };
    hooks.on_end = [this] { loop_.Stop(); };
    const auto who = [this](const ProcessKey& key) -> const ProcessInfo* {
      const auto found = processes_.find(key);
      return found == processes_.end() ? nullptr : &found->second;
    };
    LeftOutput left("/proc", table_, who, heard_, 0, std::move(hooks));
    left.Begin(loop_, {"j1"});
    loop_.Run();
  }

  std::string folder_;
  std::vector<int> files_;
  std::map<ProcessKey, ProcessInfo> processes_;
  collectors::ProcessTable table_;
  collectors::HeardFiles heard_;
  exporter::EventLoop loop_;
  int32_t ranks_ = 0;
  std::vector<LeftText> texts_;
  std::string read_;  // jobs of which all that they wrote was read
};

TEST_F(LeftOutputTest, ARanksOwnFilesAreReadFromTheirBegin) {
  const int out = File("out", "one\ntwo\n"), err = File("err", "three\n");
  const ProcessKey rank = Start(ProcessRole::kRank, out, err);
  Read();
  ASSERT_EQ(texts_.size(), 2u);
  EXPECT_EQ(texts_[0].bytes, "one\ntwo\n");
  EXPECT_EQ(texts_[0].begin, 0);
  EXPECT_EQ(texts_[0].skipped, 0);
  EXPECT_EQ(texts_[0].only, rank);
  EXPECT_EQ(texts_[0].slot, 1);
  EXPECT_EQ(texts_[1].bytes, "three\n");
  EXPECT_EQ(texts_[1].slot, 2);
  EXPECT_EQ(read_, "j1");
}

TEST_F(LeftOutputTest, AFileThatRanksAndTheirLauncherShareIsNobodysAndReadOnce) {
  const int out = File("out", "one\n");
  const ProcessKey first = Start(ProcessRole::kLauncher, out, out, {}, "torchrun");
  Start(ProcessRole::kRank, out, out, first);
  Start(ProcessRole::kRank, out, out, first);
  Start(ProcessRole::kWorker, File("helper", "of a compiler\n"), out, first);
  Read();
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_EQ(texts_[0].bytes, "one\n");
  EXPECT_EQ(texts_[0].only, ProcessKey{});
  EXPECT_EQ(texts_[0].launcher, ProcessKey{});
  EXPECT_EQ(read_, "j1");
}

TEST_F(LeftOutputTest, WhatSlurmPassesOnStandsInTheFirstProcesssFile) {
  for (const bool relayed : {true, false}) {
    processes_.clear();
    table_ = {};
    texts_.clear();
    read_.clear();
    const int out = File("slurm.out", ""), pipe = Pipe();
    ASSERT_EQ(ftruncate(out, 0), 0);
    ASSERT_EQ(pwrite(out, "of all ranks\n", 13, 0), 13);
    const ProcessKey script = Start(ProcessRole::kUnknown, out, out, {}, "slurm_script");
    Start(ProcessRole::kLauncher, out, out, script, relayed ? "srun" : "tee");
    Start(ProcessRole::kRank, pipe, pipe);
    Read();
    ASSERT_EQ(texts_.size(), 1u);
    EXPECT_EQ(texts_[0].bytes, "of all ranks\n");
    EXPECT_EQ(texts_[0].launcher, script) << "ranks may be heard to say the same";
    EXPECT_EQ(read_, relayed ? "j1" : "") << "another program may leave out what it likes";
  }
}

TEST_F(LeftOutputTest, APipeATerminalAndNowhereCannotBeReadBack) {
  const int null = open("/dev/null", O_WRONLY);
  files_.push_back(null);
  for (const int err : {Pipe(), null}) {
    processes_.clear();
    table_ = {};
    texts_.clear();
    Start(ProcessRole::kRank, File("out", "x\n"), err);
    Read();
    EXPECT_EQ(texts_.size(), 1u);
    EXPECT_EQ(read_, "");
  }
}

TEST_F(LeftOutputTest, OfALargeFileTheBeginAndTheEndAreRead) {
  std::string text;
  for (int i = 0; text.size() < (3u << 20); ++i) text += "step " + std::to_string(i) + "\n";
  Start(ProcessRole::kRank, File("out", text), File("err", ""));
  Read();
  ASSERT_EQ(texts_.size(), 2u);
  const LeftText& left = texts_[0].head.empty() ? texts_[1] : texts_[0];
  EXPECT_TRUE(text.starts_with(left.head));
  EXPECT_EQ(left.head.back(), '\n') << "whole lines";
  EXPECT_GT(left.head.size(), LeftOutput::kKeptOfBegin - 20);
  EXPECT_EQ(static_cast<int64_t>(left.bytes.size()), LeftOutput::kKeptOfEnd);
  EXPECT_TRUE(text.ends_with(left.bytes));
  EXPECT_EQ(static_cast<int64_t>(left.head.size()) + left.skipped, left.begin)
      << "each byte is told or counted";
  EXPECT_EQ(left.begin + static_cast<int64_t>(left.bytes.size()),
            static_cast<int64_t>(text.size()));
}

TEST_F(LeftOutputTest, AFileThatWasCutShortIsNotAllThatWasWritten) {
  const int out = File("out", "a long beginning that is gone\n");
  ASSERT_EQ(ftruncate(out, 0), 0);
  Start(ProcessRole::kRank, out, out);
  Read();
  EXPECT_EQ(read_, "");
}

TEST_F(LeftOutputTest, BinaryDataAreNoText) {
  Start(ProcessRole::kRank, File("out", std::string("PK\0\3", 4)), File("err", "text\n"));
  Read();
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_EQ(texts_[0].bytes, "text\n");
  EXPECT_EQ(read_, "");
}

TEST_F(LeftOutputTest, AnotherUsersFileIsNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const int out = File("out", "secret\n");
  ASSERT_EQ(fchown(out, 61001, 61001), 0);
  Start(ProcessRole::kRank, out, File("err", "x\n"));
  Read();
  ASSERT_EQ(texts_.size(), 1u);
  EXPECT_EQ(texts_[0].bytes, "x\n");
  EXPECT_EQ(read_, "");
}

}  // namespace
}  // namespace rankscope::probes
