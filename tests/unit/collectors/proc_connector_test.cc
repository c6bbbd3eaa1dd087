// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_connector.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

constexpr Duration kPatience = Seconds(20);

ProcReader RealReader() {
  return ProcReader("/proc", "/sys/fs/cgroup", [](std::string_view key) { return key == "RANK"; });
}

// The real kernel, real children. Runs where the connector may be opened.
class ProcConnectorTest : public testing::Test {
 protected:
  // Runs the loop until `done` or the patience ends.
  void RunUntil(const std::function<bool()>& done) {
    bool late = false;
    const auto timeout = loop_.After(kPatience, [this, &late] {
      ADD_FAILURE() << "timed out";
      late = true;
      loop_.Stop();
    });
    sink_.on_accept = [&](const Observation&) {
      if (done()) loop_.Stop();
    };
    // What came between the word to stop and the end may have made it untrue again.
    while (!done() && !late) loop_.Run();
    loop_.Cancel(timeout);
    sink_.on_accept = nullptr;
  }

  bool StartUp() {
    const Status status = connector_.Start(loop_, sink_);
    if (!status.ok()) return false;
    RunUntil([this] { return !sink_.Of<SourceState>().empty(); });
    return sink_.Of<SourceState>().back().state == Availability::kUp;
  }

  // A child that waits for a byte, then does `what`; tracked as the root of a job.
  template <typename What>
  pid_t Child(What what) {
    int go[2];
    EXPECT_EQ(pipe(go), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      char c = 0;
      if (read(go[0], &c, 1) != 1) _exit(99);
      what();
      _exit(98);
    }
    close(go[0]);
    go_ = go[1];
    const auto stat = RealReader().Stat(pid);
    EXPECT_TRUE(stat);
    table_->AddRoot({pid, stat->start_ticks}, "run-1");
    return pid;
  }
  void Go() {
    EXPECT_EQ(write(go_, "x", 1), 1);
    close(go_);
  }
  std::optional<ProcessExit> ExitOf(pid_t pid) const {
    for (const ProcessExit& exit : sink_.Of<ProcessExit>()) {
      if (exit.key.pid == pid) return exit;
    }
    return std::nullopt;
  }

  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
  ProcConnector connector_{RealReader(), table_};
  int go_ = -1;
};

TEST_F(ProcConnectorTest, TellsTheSignalThatKilledATrackedProcess) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  const pid_t pid = Child([] { pause(); });
  kill(pid, SIGKILL);
  RunUntil([&] { return ExitOf(pid).has_value(); });
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(ExitOf(pid)->status_known);
  EXPECT_EQ(ExitOf(pid)->wait_status, status);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(go_);
}

TEST_F(ProcConnectorTest, TellsTheExitCodeOfAGrandchildAndItsBirth) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  const pid_t pid = Child([] {
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(7);
    waitpid(grandchild, nullptr, 0);
    _exit(3);
  });
  Go();
  // In any order: do_exit() wakes the parent (exit_notify) before it tells the connector, so that a
  // parent on another CPU may be gone, and told to be, first.
  RunUntil([&] {
    const std::vector<ProcessStart> starts = sink_.Of<ProcessStart>();
    return ExitOf(pid) && std::all_of(starts.begin(), starts.end(), [&](const ProcessStart& start) {
             return ExitOf(start.key.pid).has_value();
           });
  });
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(WEXITSTATUS(ExitOf(pid)->wait_status), 3);
  // A grandchild that is gone before its start time can be read is not told; usually it is in time.
  for (const ProcessStart& start : sink_.Of<ProcessStart>()) {
    EXPECT_EQ(start.job_id, "run-1");
    const auto exit = ExitOf(start.key.pid);
    ASSERT_TRUE(exit);
    EXPECT_EQ(WEXITSTATUS(exit->wait_status), 7);
  }
}

TEST_F(ProcConnectorTest, ReadsTheFactsAfterExec) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  const pid_t pid = Child([] {
    setenv("RANK", "5", 1);
    execl("/bin/sleep", "sleep", "30", nullptr);
  });
  Go();
  const auto complete = [&]() -> std::optional<ProcessStart> {
    for (const ProcessStart& start : sink_.Of<ProcessStart>()) {
      if (start.key.pid == pid && start.complete && start.comm == "sleep") return start;
    }
    return std::nullopt;
  };
  RunUntil([&] { return complete().has_value(); });
  EXPECT_EQ(complete()->argv, (std::vector<std::string>{"sleep", "30"}));
  ASSERT_EQ(complete()->env.size(), 1u);
  EXPECT_EQ(complete()->env[0].value, "5");
  kill(pid, SIGTERM);
  RunUntil([&] { return ExitOf(pid).has_value(); });
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(WTERMSIG(ExitOf(pid)->wait_status), SIGTERM);
}

// Two of one machine: each hears the other's acknowledgement, and only its own says that it works.
TEST_F(ProcConnectorTest, TwoSubscribersEachHaveTheirOwnAnswer) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  RecordingSink other_sink;
  const auto other_table = std::make_shared<ProcessTable>();
  ProcConnector other{RealReader(), other_table};
  other_sink.on_accept = [this](const Observation&) { loop_.Stop(); };
  ASSERT_TRUE(other.Start(loop_, other_sink).ok());
  while (other_sink.Of<SourceState>().empty()) loop_.Run();
  EXPECT_EQ(other_sink.Of<SourceState>().back().state, Availability::kUp);
  EXPECT_EQ(sink_.Of<SourceState>().size(), 1u);
  other.Stop();
}

TEST_F(ProcConnectorTest, AStrangerWithARankIsFoundAtItsExec) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("RANK", "1", 1);
    execl("/bin/sleep", "sleep", "30", nullptr);
    _exit(127);
  }
  RunUntil([&] { return table_->Find(pid) != nullptr; });
  kill(pid, SIGKILL);
  RunUntil([&] { return ExitOf(pid).has_value(); });
  waitpid(pid, nullptr, 0);
  EXPECT_TRUE(table_->exits_told());
}

// As in a container with the host's network, while another program of the host has subscribed.
TEST_F(ProcConnectorTest, InAPidNamespaceOfItsOwnItIsNotSupported) {
  if (!StartUp()) GTEST_SKIP() << "process connector: " << sink_.Of<SourceState>().back().reason;
  constexpr int kNoRight = 77;
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWPID) != 0) _exit(kNoRight);
    const pid_t first = fork();
    if (first == 0) {
      RecordingSink sink;
      exporter::EventLoop loop;
      ProcConnector inner{RealReader(), std::make_shared<ProcessTable>()};
      const bool started = inner.Start(loop, sink).ok();
      const std::vector<SourceState> states = sink.Of<SourceState>();
      const bool told = states.size() == 1 && states[0].state == Availability::kUnsupported &&
                        states[0].reason.find("pid namespace of its own") != std::string::npos;
      _exit(!started && told ? 0 : 1);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(outer, &status, 0), outer);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoRight) GTEST_SKIP() << "needs the right to make a pid namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace rankscope::collectors
