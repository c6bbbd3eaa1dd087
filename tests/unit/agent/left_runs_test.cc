// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/left_runs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "exporter/loop/owned_fd.h"
#include "exporter/replay/recorder.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr ProcessKey kRoot{312, 4711};

// A run's folder with a recording, as a wrapper leaves it.
class Folder {
 public:
  Folder() {
    fs::create_directories(path() + "/recording");
    const OwnedFd fd(open((path() + "/recording").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    recorder_.emplace(fd.get(), recording::Header{});
    EXPECT_TRUE(recorder_->Open().ok());
  }
  std::string path() const { return directory_.path() + "/run"; }

  void Line(const std::string& text, const std::string& job_id = "j1", uint32_t stream = 1) {
    LogLine line;
    line.stream = stream;
    line.stream_name = "stdout";
    line.job_id = job_id;
    line.text = text;
    line.writer = {1, 1};
    line.rank = 7;
    Add(line);
  }
  void Mark(RunMark::What what, const std::string& job_id = "j1") {
    RunMark mark;
    mark.job_id = job_id;
    mark.what = what;
    mark.status_known = true;
    mark.wait_status = 1 << 8;
    mark.root = {1, 1};
    mark.uid = 0;
    Add(mark);
  }
  void Add(decltype(Observation::kind) kind) {
    Observation observation;
    observation.t = {1000 + seq_};
    observation.seq = ++seq_;
    observation.kind = std::move(kind);
    recorder_->Accept(observation);
  }
  LeftRest Read(int64_t after_seq = 0, uint32_t uid = getuid()) {
    recorder_->Flush();
    return ReadLeftRun({"j1", kRoot, path() + "/log", uid, after_seq});
  }

 private:
  TemporaryDirectory directory_;
  std::optional<replay::Recorder> recorder_;
  int64_t seq_ = 0;
};

TEST(LeftRuns, GiveWhatWasNotHeardAndTheEnd) {
  Folder folder;
  folder.Line("heard");
  folder.Line("not heard, password=hunter2secret");
  folder.Mark(RunMark::What::kEnd);
  folder.Mark(RunMark::What::kStreamsClosed);
  const LeftRest rest = folder.Read(1);
  EXPECT_EQ(rest.problem, "");
  EXPECT_TRUE(rest.ended);
  EXPECT_EQ(rest.last_seq, 4);
  ASSERT_EQ(rest.observations.size(), 3u);
  const auto& line = std::get<LogLine>(rest.observations[0].kind);
  EXPECT_TRUE(line.text.starts_with("not heard"));
  EXPECT_EQ(line.text.find("hunter2secret"), std::string_view::npos) << "masked again";
  EXPECT_EQ(line.writer, ProcessKey{});
  EXPECT_EQ(line.rank, -1);
  const auto& end = std::get<RunMark>(rest.observations[1].kind);
  EXPECT_TRUE(end.from_folder);
  EXPECT_EQ(end.wait_status, 1 << 8);
  EXPECT_EQ(end.root, kRoot) << "whose end it is says the daemon";
  EXPECT_EQ(end.uid, getuid());
}

TEST(LeftRuns, SayNothingOfOtherJobsProcessesCardsOrTime) {
  Folder folder;
  folder.Line("of another", "j2");
  folder.Line("of no stream", "j1", 9);
  folder.Mark(RunMark::What::kEnd, "j2");
  folder.Mark(RunMark::What::kLost);
  folder.Mark(RunMark::What::kBegin);
  folder.Add(ProcessExit{{1, 1}, 9, true, false});
  folder.Add(KernelEvent{1, KernelEventType::kXid, "NVRM: Xid", {1, 1}, "0000:81:00.0", 79});
  folder.Add(SchedulerFact{"j1", "0", "state", "NODE_FAIL", "sacct", 0, "n1"});
  folder.Add(Epoch{1, 1, "boot", {5}});
  folder.Add(Tick{});
  const LeftRest rest = folder.Read();
  EXPECT_TRUE(rest.observations.empty());
  EXPECT_FALSE(rest.ended);
}

TEST(LeftRuns, AreNotReadOfAnotherUserNorThroughALink) {
  Folder folder;
  folder.Line("text");
  EXPECT_TRUE(folder.Read(0, getuid() + 1).observations.empty());
  EXPECT_NE(folder.Read(0, getuid() + 1).problem, "");
  const std::string recording = folder.path() + "/recording";
  fs::rename(recording, folder.path() + "/elsewhere");
  fs::create_directory_symlink(folder.path() + "/elsewhere", recording);
  EXPECT_TRUE(folder.Read().observations.empty());
  fs::remove(recording);
  fs::create_directory(recording);
  EXPECT_EQ(mkfifo((recording + "/bulk-00000001.rec").c_str(), 0600), 0);
  EXPECT_TRUE(folder.Read().observations.empty()) << "and nothing is waited for";
}

TEST(LeftRuns, HaveAFolderByItsWholeNameOnly) {
  EXPECT_NE(ReadLeftRun({"j1", kRoot, "", getuid(), 0}).problem, "");
  EXPECT_NE(ReadLeftRun({"j1", kRoot, "log", getuid(), 0}).problem, "");
  EXPECT_NE(ReadLeftRun({"j1", kRoot, "/log", getuid(), 0}).problem, "");
}

}  // namespace
}  // namespace rankscope::exporter
