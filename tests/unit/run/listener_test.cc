// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "detectors/recording/recording.h"
#include "exporter/replay/segments.h"
#include "exporter/run/clock.h"
#include "exporter/run/daemon_link.h"
#include "exporter/run/process_facts.h"
#include "exporter/run/run_listener.h"
#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// What passed, one line each.
class Notes final : public Sink {
 public:
  void Accept(const Observation& observation) override {
    std::ostringstream note;
    if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
      constexpr const char* kWords[] = {"?", "begin", "end", "closed", "lost"};
      note << kWords[static_cast<int>(mark->what)] << " " << mark->job_id
           << (mark->uid == getuid() ? "" : " of another");
    } else if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
      note << line->stream << "@" << line->offset << " " << line->text;
    } else if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) {
      note << "start " << start->key.pid << (start->parent.pid == getpid() ? "" : " of nobody")
           << (start->cgroup.find("forged") == std::string::npos ? "" : " forged")
           << (start->uid == getuid() ? "" : " of another");
    } else if (std::holds_alternative<ProcessExit>(observation.kind)) {
      note << "exit";
    } else {
      note << "other";
    }
    notes.push_back(note.str());
    latest = std::max(latest, observation.t);
  }
  std::vector<std::string> notes;
  Timestamp latest;
};

class ListenerTest : public testing::Test {
 protected:
  ListenerTest() {
    child_ = fork();  // before the pipes, whose ends it shall not have
    if (child_ == 0) {
      pause();
      _exit(0);
    }
    root_ = ReadProcessKey(child_);
    std::string name = std::filesystem::temp_directory_path() / "rankscope-listener-XXXXXX";
    folder_ = mkdtemp(name.data());
    log_ = OwnedFd(open((folder_ + "/log").c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    recording_ = OwnedFd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    life_ = Pipe();
    out_ = Pipe();
    RunListener::Hooks hooks;
    hooks.on_end = [this](const std::string& job) { ended_.push_back(job); };
    listener_ = std::make_unique<RunListener>(socket_path(), hooks);
    const Status started = listener_->Start(loop_, sink_);
    EXPECT_TRUE(started) << (started.ok() ? "" : started.error());
  }
  ~ListenerTest() override {
    listener_.reset();
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  struct Ends {
    OwnedFd read;
    OwnedFd write;
  };
  static Ends Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    return {OwnedFd(ends[0]), OwnedFd(ends[1])};
  }
  static OwnedFd Copy(int fd) { return OwnedFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

  std::string socket_path() const { return folder_ + "/run.sock"; }

  std::unique_ptr<DaemonLink> MakeLink(const std::string& job_id = "8841") {
    DaemonLink::Passed passed{job_id, root_, recording_.get(), log_.get(), Copy(life_.read.get()),
                              {}};
    passed.streams[kStdout] = Copy(out_.read.get());
    return std::make_unique<DaemonLink>(socket_path(), std::move(passed));
  }

  template <typename Kind>
  void Record(Kind kind, Timestamp t = {1}) {
    Observation observation;
    observation.t = t;
    observation.seq = ++seq_;
    observation.kind = std::move(kind);
    std::string bytes;
    if (seq_ == 1) recording::AppendHeader({}, bytes);
    recording::AppendObservation(observation, bytes);
    std::ofstream(folder_ + "/" + replay::SegmentName(1), std::ios::app) << bytes;
  }
  void RecordMark(RunMark::What what, const std::string& job_id = "8841") {
    RunMark mark;
    mark.job_id = job_id;
    mark.what = what;
    mark.uid = 12345;  // what a recording says of it is not believed
    Record(mark);
  }
  void RecordLine(std::string_view text, int64_t offset, const std::string& job_id = "8841") {
    LogLine line;
    line.stream = 1;
    line.stream_name = "stdout";
    line.job_id = job_id;
    line.text = text;
    line.offset = offset;
    line.end = LineEnd::kLf;
    Record(line);
  }

  // Runs the loop until the condition holds; false after ten seconds.
  bool RunUntil(const std::function<bool()>& condition) {
    bool held = false;
    const Timestamp end{MonotonicNow().ns + Seconds(10).ns};
    const auto timer = loop_.Every(Milliseconds(5), [&] {
      held = condition();
      if (held || MonotonicNow() > end) loop_.Stop();
    });
    loop_.Run();
    loop_.Cancel(timer);
    return held;
  }

  OwnedFd RawClient() {
    OwnedFd client(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_path().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return client;
  }

  pid_t child_ = -1;
  ProcessKey root_;  // the command
  std::string folder_;
  OwnedFd log_;
  OwnedFd recording_;
  Ends life_;
  Ends out_;
  int64_t seq_ = 0;
  exporter::EventLoop loop_;
  Notes sink_;
  std::vector<std::string> ended_;
  std::unique_ptr<RunListener> listener_;
};

TEST_F(ListenerTest, FollowsTheRecordingAndAnswersAtTheEnd) {
  const auto link = MakeLink();
  RecordMark(RunMark::What::kBegin);
  RecordLine("step 1", 0);
  link->Poll(MonotonicNow());
  ASSERT_TRUE(link->connected());
  ASSERT_TRUE(RunUntil([&] { return sink_.notes.size() == 2; }));
  EXPECT_THAT(sink_.notes, ElementsAre("begin 8841", "1@0 step 1"));

  RecordLine("step 2", 7);
  RecordMark(RunMark::What::kEnd);
  std::optional<Judgement> answer;
  std::thread wrapper([&] { answer = link->End(); });
  EXPECT_TRUE(RunUntil([&] { return !ended_.empty(); }));
  EXPECT_THAT(sink_.notes, ElementsAre("begin 8841", "1@0 step 1", "1@7 step 2", "end 8841"));
  listener_->Answer("other", "{}");
  listener_->Answer("8841", "{\"code\":\"G1\"}", "healthy\n");
  wrapper.join();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->json, "{\"code\":\"G1\"}");
  EXPECT_EQ(answer->text, "healthy\n");
  EXPECT_TRUE(RunUntil([&] { return listener_->runs() == 0; }));
}

TEST_F(ListenerTest, AWrapperSpeaksForItsOwnJobOnly) {
  const auto link = MakeLink();
  RecordMark(RunMark::What::kBegin, "9999");
  RecordLine("other", 0, "9999");
  RecordMark(RunMark::What::kLost);
  Record(Tick{});
  KernelEvent oom;
  oom.type = KernelEventType::kOomKill;
  Record(oom);
  ProcessStart start;
  start.key = {1, 1};
  start.job_id = "8841";
  Record(start);
  start.key = root_;
  start.uid = 12345;
  start.parent = {1, 1};
  start.cgroup = "0::/forged/job_8841";
  Record(start);
  RecordLine("mine", 0);
  LogLine forged;
  forged.stream = 77;
  forged.job_id = "8841";
  Record(forged);
  RecordMark(RunMark::What::kEnd);
  link->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return !sink_.notes.empty() && sink_.notes.back() == "end 8841"; }));
  EXPECT_THAT(sink_.notes, ElementsAre("start " + std::to_string(child_), "1@0 mine", "end 8841"));
  // Another job's mark, its line, our own death, the kernel's event, process 1, stream 77.
  EXPECT_EQ(listener_->counters().foreign, 6);
}

TEST_F(ListenerTest, TimeFromTheFutureIsNotBelieved) {
  const auto link = MakeLink();
  RunMark mark;
  mark.job_id = "8841";
  mark.what = RunMark::What::kBegin;
  Record(mark, {MonotonicNow().ns + Seconds(1e6).ns});
  link->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return !sink_.notes.empty(); }));
  EXPECT_LE(sink_.latest, MonotonicNow());
}

TEST_F(ListenerTest, DrainsThePipesOfADeadWrapper) {
  auto link = MakeLink();
  // The wrapper had logged three lines and recorded one.
  WriteAll(log_.get(), "one\ntwo\nth");
  RecordLine("one", 0);
  link->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return sink_.notes.size() == 1; }));
  link.reset();
  life_.read.Reset();
  life_.write.Reset();
  out_.read.Reset();
  EXPECT_EQ(WriteAll(out_.write.get(), "ree\nfour\n").error, 0);
  ASSERT_TRUE(RunUntil([&] { return sink_.notes.size() == 5; }));
  EXPECT_THAT(sink_.notes,
              ElementsAre("1@0 one", "lost 8841", "3@4 two", "3@8 three", "3@14 four"));
  out_.write.Reset();
  ASSERT_TRUE(RunUntil([&] { return listener_->runs() == 0; }));
  EXPECT_EQ(sink_.notes.back(), "closed 8841");
  std::ifstream log(folder_ + "/log");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(log), {}), "one\ntwo\nthree\nfour\n");
}

TEST_F(ListenerTest, LeavesThePipesToALivingGuardianAndReadsItsLog) {
  auto link = MakeLink();
  link->Poll(MonotonicNow());
  ASSERT_TRUE(
      RunUntil([&] { return listener_->runs() == 1 && listener_->counters().accepted == 1; }));
  link.reset();
  ASSERT_TRUE(RunUntil([&] { return listener_->counters().orphaned == 1; }));
  WriteAll(out_.write.get(), "in the pipe\n");
  WriteAll(log_.get(), "by the guardian\n");
  ASSERT_TRUE(RunUntil([&] { return sink_.notes.size() == 2; }));
  EXPECT_THAT(sink_.notes, ElementsAre("lost 8841", "3@0 by the guardian"));
  life_.write.Reset();
  ASSERT_TRUE(RunUntil([&] { return sink_.notes.size() == 3; }));
  EXPECT_EQ(sink_.notes.back(), "3@16 in the pipe");
}

TEST_F(ListenerTest, LetsGoOfAStreamWhenAsked) {
  const auto link = MakeLink();
  link->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return listener_->counters().accepted == 1; }));
  out_.read.Reset();
  link->Release(kStdout);
  ASSERT_TRUE(RunUntil([&] {
    link->Poll(MonotonicNow());
    return !link->Holds(kStdout);
  }));
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(WriteAll(out_.write.get(), "x").error, EPIPE);
}

TEST_F(ListenerTest, StrangersAreCountedAndShownOut) {
  std::vector<OwnedFd> clients;
  const auto expect_refusal = [&](std::span<const char> bytes, std::vector<int> fds) {
    const int64_t before = listener_->counters().malformed;
    clients.push_back(RawClient());
    SendPacket(clients.back().get(), bytes, fds);
    EXPECT_TRUE(RunUntil([&] { return listener_->counters().malformed == before + 1; }));
  };
  HelloMessage hello;
  std::string("8841").copy(hello.job_id.data(), 4);
  hello.streams = 1;
  const int dir = recording_.get(), log = log_.get(), life = life_.read.get(),
            out = out_.read.get();
  const std::string garbage(200, 'x');
  expect_refusal({garbage.data(), garbage.size()}, {});
  expect_refusal(BytesOf(hello), {});
  expect_refusal(BytesOf(hello), {dir, log, life});                    // a stream is missing
  expect_refusal(BytesOf(hello), {log, log, life, out});               // no folder
  expect_refusal(BytesOf(hello), {dir, out, life, out});               // no log
  expect_refusal(BytesOf(hello), {dir, log, life, out_.write.get()});  // the wrong end
  expect_refusal(BytesOf(hello), {dir, log, life, out, out});          // one too many
  HelloMessage other = hello;
  other.version = 99;
  expect_refusal(BytesOf(other), {dir, log, life, out});
  other = hello;
  other.job_id[0] = '/';
  expect_refusal(BytesOf(other), {dir, log, life, out});
  EXPECT_THAT(sink_.notes, IsEmpty());

  // And a wrapper is still welcome.
  const auto link = MakeLink();
  RecordMark(RunMark::What::kBegin);
  link->Poll(MonotonicNow());
  EXPECT_TRUE(RunUntil([&] { return sink_.notes.size() == 1; }));
}

TEST_F(ListenerTest, SilentConnectionsAreFewAndTakeNoWrappersPlace) {
  std::vector<OwnedFd> clients;
  for (size_t i = 0; i < RunListener::kMaxSilentPerUser + 5; ++i) clients.push_back(RawClient());
  EXPECT_TRUE(RunUntil([&] { return listener_->counters().refused == 5; }));
  EXPECT_EQ(listener_->runs(), RunListener::kMaxSilentPerUser);
  clients.clear();
  ASSERT_TRUE(RunUntil([&] { return listener_->runs() == 0; }));
  const auto link = MakeLink();
  RecordMark(RunMark::What::kBegin);
  link->Poll(MonotonicNow());
  EXPECT_TRUE(RunUntil([&] { return sink_.notes.size() == 1; }));
}

TEST_F(ListenerTest, RefusesMoreRunsThanAUserMayHave) {
#ifdef __SANITIZE_ADDRESS__
  // A listener that stops leaves to the kernel what the user's thread has not closed by then, for
  // closing may hang: of 128 runs that is most.
  const __lsan::ScopedDisabler left;
#endif
  std::vector<std::unique_ptr<DaemonLink>> links;
  for (size_t i = 0; i < RunListener::kMaxRunsPerUser + 5; ++i) {
    links.push_back(MakeLink("run-" + std::to_string(i)));
    links.back()->Poll(MonotonicNow());
    if (i % 8 == 0)
      RunUntil([&] {
        const RunListener::Counters counters = listener_->counters();
        return counters.accepted + counters.refused > static_cast<int64_t>(i);
      });
  }
  EXPECT_TRUE(RunUntil([&] { return listener_->counters().refused == 5; }));
  EXPECT_EQ(listener_->runs(), RunListener::kMaxRunsPerUser);
}

TEST_F(ListenerTest, OfTwoWrappersTheLastOneEndsTheJob) {
  const auto first = MakeLink();
  first->Poll(MonotonicNow());
  const auto second = MakeLink();
  second->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return listener_->counters().accepted == 2; }));
  RecordMark(RunMark::What::kBegin);
  ASSERT_TRUE(RunUntil([&] {
    for (const auto& link : {first.get(), second.get()}) {
      link->NewData();
      link->Poll(MonotonicNow());
    }
    return sink_.notes.size() == 2;
  }));
  // Both follow the same folder, so each tells the end once.
  RecordMark(RunMark::What::kEnd);
  RecordMark(RunMark::What::kStreamsClosed);
  std::optional<Judgement> answer;
  std::thread wrapper([&] { answer = first->End(); });
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 1; }));
  EXPECT_THAT(sink_.notes, testing::Not(testing::Contains("end 8841")));
  EXPECT_THAT(sink_.notes, testing::Contains("exit"));
  wrapper.join();
  wrapper = std::thread([&] { answer = second->End(); });
  EXPECT_TRUE(RunUntil([&] { return ended_.size() == 2; }));
  wrapper.join();
  EXPECT_THAT(sink_.notes, testing::Contains("end 8841").Times(1));
  EXPECT_THAT(sink_.notes, testing::Contains("closed 8841").Times(1));
}

TEST_F(ListenerTest, TwoWrappersOfOneJobHaveStreamsOfTheirOwn) {
  const auto first = MakeLink();
  first->Poll(MonotonicNow());
  ASSERT_TRUE(RunUntil([&] { return listener_->counters().accepted == 1; }));
  const auto second = MakeLink();
  second->Poll(MonotonicNow());
  RecordLine("same recording for both", 0);
  ASSERT_TRUE(RunUntil([&] {
    first->NewData();
    first->Poll(MonotonicNow());
    second->Poll(MonotonicNow());
    return sink_.notes.size() == 2;
  }));
  EXPECT_THAT(sink_.notes, testing::UnorderedElementsAre("1@0 same recording for both",
                                                         "5@0 same recording for both"));
}

TEST_F(ListenerTest, TakesOverAStaleSocketButNotALivingOne) {
  exporter::EventLoop loop;
  RunListener second(socket_path());
  const Status refused = second.Start(loop, sink_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), testing::HasSubstr(socket_path()));

  const std::string stale = folder_ + "/stale.sock";
  OwnedFd dead(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  stale.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  dead.Reset();
  RunListener third(stale);
  EXPECT_TRUE(third.Start(loop, sink_));
  struct stat status {};
  ASSERT_EQ(stat(stale.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666u);
}

}  // namespace
}  // namespace rankscope::run
