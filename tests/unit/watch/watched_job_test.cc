// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// From polls of files and Slurm's records to the verdict, by the engine that all commands have.
#include "exporter/watch/watched_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/slurm/told.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::ExitStatus;
using exporter::slurm::SlurmJob;

constexpr int64_t kStart = 1'795'826'000;
constexpr Duration kSecond = Seconds(1);

std::string Steps(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i)
    text += "step " + std::to_string(i) + " loss " + std::to_string(4.0 / i + 0.5) + " lr 0.05\n";
  return text;
}

constexpr char kTraceback[] =
    "Traceback (most recent call last):\n  File \"train.py\", line 20, in <module>\n"
    "    raise KeyError(\"missing_column\")\nKeyError: 'missing_column'\n";

class Watched : public testing::Test {
 protected:
  Watched() {
    clocks_.wall_offset_ns = (kStart - 1000) * 1'000'000'000;
    clocks_.now = Timestamp{} + Seconds(1010);  // ten seconds after the start
    judge_.SetClock(clocks_.wall_offset_ns, clocks_.now);
    judge_.TellSlurm(true, {}, clocks_.now);
    slurm_.job_id = "8841";
    slurm_.state = "RUNNING";
    slurm_.nodes = slurm_.batch_host = "n1";
    slurm_.start = kStart;
    slurm_.std_out = slurm_.std_err = "/logs/slurm-%j.out";
    slurm_.restarts = 0;
  }

  void Begin() {
    job_.course().Update(slurm_);
    job_.BeginRun(judge_, clocks_);
  }
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clocks_.now = clocks_.now + kSecond;
      judge_.Tick(clocks_.now);
    }
  }
  // The file has `text` now.
  void Look(const std::string& text, uint64_t inode = 5) {
    FollowedFile& file = job_.files().front();
    OutputPiece piece;
    piece.path = "/logs/slurm-8841.out";
    piece.device = 1;
    piece.inode = inode;
    piece.size = static_cast<int64_t>(text.size());
    piece.written_ns = clocks_.wall_ns();
    piece.anew = file.seen && (file.request.inode != inode || piece.size < file.request.offset);
    piece.begin = piece.anew ? 0 : file.request.offset;
    piece.bytes = text.substr(static_cast<size_t>(piece.begin));
    job_.OnPiece(0, piece, judge_, clocks_);
  }
  void End(const std::string& state, int code, int signal) {
    slurm_.state = state;
    slurm_.exit = ExitStatus{code, signal};
    slurm_.end = clocks_.wall_ns() / 1'000'000'000;
    job_.course().Update(slurm_);
    job_.EndRun(false, clocks_);
    job_.Know(exporter::slurm::RecordOf(slurm_, "squeue"));
  }
  const proto::Verdict& Conclude() {
    job_.Conclude(judge_, clocks_);
    Pass(4);
    return *judge_.Find("8841");
  }

  Clocks clocks_;
  JobJudge judge_;
  SlurmJob slurm_;
  WatchedJob job_{"8841"};
};

TEST_F(Watched, AnExceptionThatWasSeenAsItHappened) {
  Begin();
  ASSERT_EQ(job_.files().size(), 1u) << "both streams go to one file";
  Look("");
  std::string text = Steps(1, 20);
  Look(text);
  Pass(20);
  EXPECT_TRUE(job_.HasCaughtUp());
  Look(text += Steps(21, 40));
  Pass(20);
  Look(text += kTraceback);
  End("FAILED", 1, 0);
  EXPECT_FALSE(job_.IsDrained(clocks_));
  Look(text);
  Pass(2);
  Look(text);
  EXPECT_TRUE(job_.IsDrained(clocks_));
  const proto::Verdict& verdict = Conclude();
  EXPECT_EQ(verdict.code(), "X1") << verdict.DebugString();
  EXPECT_EQ(verdict.sub(), "key_or_index");
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_EQ(verdict.disposition().kind(), "failed");
}

TEST_F(Watched, AnExceptionThatIsReadWhenTheJobHasEnded) {
  End("FAILED", 1, 0);
  WatchedJob ended("8841");
  ended.course().Update(slurm_);
  clocks_.now = clocks_.now + Seconds(3600);
  std::swap(job_, ended);
  job_.BeginRun(judge_, clocks_);
  job_.EndRun(false, clocks_);
  job_.Know(exporter::slurm::RecordOf(slurm_, "sacct"));
  Look(Steps(1, 40) + kTraceback);
  Look(Steps(1, 40) + kTraceback);
  EXPECT_TRUE(job_.IsDrained(clocks_)) << "it ended long ago: one poll is enough";
  const proto::Verdict& verdict = Conclude();
  EXPECT_EQ(verdict.code(), "X1") << verdict.DebugString();
  EXPECT_EQ(verdict.state(), proto::FINAL);
}

TEST_F(Watched, ATimeLimitIsSlurmsWord) {
  slurm_.time_limit_seconds = 60;
  Begin();
  Look(Steps(1, 200));
  Pass(50);
  End("TIMEOUT", 0, 15);
  EXPECT_EQ(Conclude().code(), "F3") << judge_.Find("8841")->DebugString();
}

TEST_F(Watched, WithoutAFileSlurmsRecordIsLeft) {
  slurm_.std_out = slurm_.std_err = "";
  Begin();
  EXPECT_TRUE(job_.files().empty());
  Pass(50);
  slurm_.state_by = "lena(1000)";
  End("CANCELLED", 0, 0);
  EXPECT_TRUE(job_.IsDrained(clocks_));
  const proto::Verdict& verdict = Conclude();
  EXPECT_EQ(verdict.code(), "X20") << verdict.DebugString();
  EXPECT_EQ(verdict.disposition().by(), "lena");
}

TEST_F(Watched, AHealthyRun) {
  Begin();
  Look(Steps(1, 100));
  Pass(30);
  Look(Steps(1, 200));
  Pass(30);
  End("COMPLETED", 0, 0);
  EXPECT_EQ(Conclude().code(), "G1") << judge_.Find("8841")->DebugString();
}

TEST_F(Watched, APutBackJobBeginsAnewInItsFile) {
  Begin();
  Look(Steps(1, 60));
  Pass(30);
  slurm_.state = "PENDING";
  slurm_.restarts = 1;
  slurm_.nodes = "";
  ASSERT_TRUE(job_.course().Update(slurm_).put_back);
  job_.EndRun(true, clocks_);
  SchedulerRecord record = exporter::slurm::RecordOf(slurm_, "squeue");
  job_.Know(std::move(record));
  const proto::Verdict& first = Conclude();
  EXPECT_EQ(first.code(), "F2") << first.DebugString();
  job_.Leave();
  Pass(120);
  slurm_.state = "RUNNING";
  slurm_.nodes = "n2";
  slurm_.start = clocks_.wall_ns() / 1'000'000'000;
  job_.course().Update(slurm_);
  job_.BeginRun(judge_, clocks_);
  Look(Steps(1, 20));  // slurmd has emptied it
  Pass(30);
  Look(Steps(1, 80));
  Pass(30);
  End("COMPLETED", 0, 0);
  const proto::Verdict& last = Conclude();
  EXPECT_EQ(last.code(), "G1") << last.DebugString();
  ASSERT_EQ(last.attempts_size(), 1);
  EXPECT_EQ(last.attempts(0).code(), "F2");
}

TEST_F(Watched, OfAFileThatIsTooLargeTheMiddleIsPassedOver) {
  Begin();
  OutputPiece piece;
  piece.path = "/logs/slurm-8841.out";
  piece.device = piece.inode = 1;
  piece.size = int64_t{1} << 40;
  piece.bytes = std::string(8 << 20, '\n');
  job_.OnPiece(0, piece, judge_, clocks_);
  const FollowedFile& file = job_.files().front();
  EXPECT_GT(file.request.offset, (int64_t{1} << 40) - (int64_t{600} << 20));
  EXPECT_FALSE(job_.HasCaughtUp());
}

TEST_F(Watched, WhyNoOutputIsRead) {
  Begin();
  EXPECT_EQ(job_.OutputNow(clocks_).error, "");
  OutputPiece piece;
  piece.path = "/logs/slurm-8841.out";
  piece.error = "No such file or directory";
  job_.OnPiece(0, piece, judge_, clocks_);
  EXPECT_EQ(job_.OutputNow(clocks_).error, "") << "it may appear yet";
  Pass(60);
  WatchedJob::Output output = job_.OutputNow(clocks_);
  EXPECT_THAT(output.paths, testing::ElementsAre("/logs/slurm-8841.out"));
  EXPECT_THAT(output.error, testing::StartsWith("No such file or directory"));
  Look(Steps(1, 3));
  output = job_.OutputNow(clocks_);
  EXPECT_THAT(output.paths, testing::ElementsAre("/logs/slurm-8841.out"));
  EXPECT_EQ(output.error, "");
}

}  // namespace
}  // namespace rankscope::watch
