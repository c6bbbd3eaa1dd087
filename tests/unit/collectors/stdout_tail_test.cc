// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When the files of a job are followed, and that it is told to be over only after their last line.
#include "exporter/output/stdout_tail.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "detectors/model/event_types.h"
#include "exporter/loop/boot_clock.h"
#include "tests/unit/agent/settled.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

// A child that writes to the file what it is given, and ends.
class Writer {
 public:
  explicit Writer(const std::string& path) : path_(path) {
    if (pipe(words_) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
      dup2(file, 1);
      dup2(file, 2);
      close(words_[1]);
      char bytes[4096];
      ssize_t got = 0;
      while ((got = read(words_[0], bytes, sizeof bytes)) > 0) {
        if (write(1, bytes, static_cast<size_t>(got)) != got) _exit(1);
      }
      _exit(0);
    }
    close(words_[0]);
  }
  ~Writer() { End(); }

  // Until it stands in the file.
  void Say(const std::string& text) {
    ASSERT_EQ(write(words_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    said_ += text.size();
    std::error_code error;
    while (std::filesystem::file_size(path_, error) != said_ || error) usleep(1000);
  }
  void End() {
    if (pid_ <= 0) return;
    close(words_[1]);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t pid() const { return pid_; }

 private:
  const std::string path_;
  size_t said_ = 0;
  int words_[2];
  pid_t pid_;
};

ProcessKey KeyOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream after(text.substr(text.rfind(')') + 1));
  std::vector<std::string> fields{std::istream_iterator<std::string>(after), {}};
  return {pid, std::stoll(fields.at(19))};  // the 22nd of all
}

class StdoutTailTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rankscope_tail_XXXXXX";
    folder_ = mkdtemp(folder);
    sink_.on_accept = [this](const Observation& observation) { Note(observation); };
  }
  void TearDown() override {
    tail_.Stop();
    std::filesystem::remove_all(folder_);
  }

  void Note(const Observation& observation) {
    if (const auto* line = std::get_if<LogLine>(&observation.kind))
      order_.push_back(std::string(line->text));
    const auto* event = std::get_if<Event>(&observation.kind);
    if (event == nullptr || event->type != WireType(EventType::kOutputRead)) return;
    for (const auto& each : event->num)
      if (each.key == "written") written_ = {each.value};
    if (event->num.empty() || event->num.front().key != "open") return;
    order_.push_back(event->num.front().value != 0 ? "<open>" : "<closed>");
    if (event->num.size() > 1) order_.back() = "<given up>";
  }
  bool Has(const std::string& what) const {
    return std::find(order_.begin(), order_.end(), what) != order_.end();
  }

  void Track(const Writer& writer) {
    process_.key = KeyOf(writer.pid());
    process_.job_id = "j1";
    process_.role = attribution::ProcessRole::kRank;
    process_.rank = 0;
    TrackedProcess tracked;
    tracked.key = process_.key;
    tracked.uid = getuid();
    tracked.job_id = "j1";
    table_->Add(tracked);
  }

  std::string folder_;
  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::vector<std::string> order_;
  Timestamp written_;
  attribution::ProcessInfo process_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
  StdoutTail tail_{
      "/proc", table_,
      [this](const ProcessKey& key) { return key == process_.key ? &process_ : nullptr; },
      Milliseconds(1)};
};

TEST_F(StdoutTailTest, AJobIsOverAfterTheLastLineOfItsFile) {
  Writer writer(folder_ + "/out");
  ASSERT_TRUE(tail_.Start(loop_, sink_).ok());
  Track(writer);
  writer.Say("first\n");
  exporter::RunUntil(loop_, [this] { return Has("first"); });
  // What it wrote last is in the file, and nobody has read it, when its end is known.
  writer.Say("second\nlast, without an end");
  writer.End();
  table_->Remove(process_.key);
  exporter::RunUntil(loop_, [this] { return Has("<closed>"); });
  EXPECT_EQ(order_, (std::vector<std::string>{"<open>", "first", "second", "last, without an end",
                                              "<closed>"}));
  EXPECT_EQ(tail_.lost(), 0);
}

TEST_F(StdoutTailTest, AFileThatIsFoundAsItsProcessEndsIsReadToo) {
  Writer writer(folder_ + "/out");
  ASSERT_TRUE(tail_.Start(loop_, sink_).ok());
  Track(writer);
  writer.Say("all\n");
  // Its files are looked for on another thread: what that answers comes after the end.
  exporter::RunUntil(loop_, [this] { return Has("<open>"); });
  table_->Remove(process_.key);
  exporter::RunUntil(loop_, [this] { return Has("<closed>"); });
  EXPECT_EQ(order_, (std::vector<std::string>{"<open>", "all", "<closed>"}));
}

TEST_F(StdoutTailTest, WhenAnOldFileWasWrittenLastIsTold) {
  Writer writer(folder_ + "/out");
  writer.Say("an hour ago\n");
  const auto hour_ago = std::filesystem::last_write_time(folder_ + "/out") - std::chrono::hours(1);
  std::filesystem::last_write_time(folder_ + "/out", hour_ago);
  while (exporter::TicksSinceBoot() <= KeyOf(writer.pid()).start_ticks) sched_yield();
  ASSERT_TRUE(tail_.Start(loop_, sink_).ok());
  Track(writer);
  exporter::RunUntil(loop_, [this] { return Has("an hour ago"); });
  EXPECT_NEAR((loop_.Now() - written_).seconds(), 3600, 60);
}

TEST_F(StdoutTailTest, NothingIsLeftOpenByASourceThatStops) {
  Writer writer(folder_ + "/out");
  ASSERT_TRUE(tail_.Start(loop_, sink_).ok());
  Track(writer);
  writer.Say("first\n");
  exporter::RunUntil(loop_, [this] { return Has("first"); });
  tail_.Stop();
  EXPECT_EQ(order_.back(), "<closed>");
}

}  // namespace
}  // namespace rankscope::collectors
