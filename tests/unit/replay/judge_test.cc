// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/document/verdict_json.h"
#include "exporter/replay/recorder.h"
#include "exporter/replay/segments.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;
using ::testing::Contains;
using ::testing::HasSubstr;

// A run of some seconds that ends in an exception; `ticks`: as a live recorder writes it.
std::vector<Observation> FailingRun(bool ticks) {
  static const std::string kLines[] = {
      "step 1 loss 2.5",
      "step 2 loss 2.4",
      "step 3 loss 2.3",
      "Traceback (most recent call last):",
      "  File \"/home/u/train.py\", line 31, in <module>",
      "    main()",
      "  File \"/home/u/train.py\", line 12, in main",
      "    batch = pick(rows)",
      "ValueError: the batch has 7 rows where 8 are needed",
  };
  std::vector<Observation> all;
  int64_t offset = 0;
  const auto add = [&](double seconds, auto kind) {
    Observation o;
    o.t = {Seconds(50 + seconds).ns};
    o.seq = static_cast<int64_t>(all.size()) + 1;
    o.kind = std::move(kind);
    all.push_back(std::move(o));
  };
  RunMark mark;
  mark.job_id = "8841";
  mark.argv = {"python", "train.py"};
  mark.root = {312, 4711};
  mark.what = RunMark::What::kBegin;
  add(0, mark);
  double at = 0.3;
  for (const std::string& text : kLines) {
    LogLine line;
    line.stream = 1;
    line.stream_name = "stderr";
    line.job_id = "8841";
    line.offset = offset;
    line.text = text;
    line.end = LineEnd::kLf;
    offset += static_cast<int64_t>(text.size()) + 1;
    add(at, line);
    if (ticks) add(at + 0.6, Tick{});
    at += 1;
  }
  mark.what = RunMark::What::kEnd;
  mark.status_known = true;
  mark.wait_status = 1 << 8;
  add(at, mark);
  mark.what = RunMark::What::kStreamsClosed;
  add(at, mark);
  if (ticks) add(at + 0.6, Tick{});
  return all;
}

std::string Bytes(const std::vector<Observation>& observations) {
  std::string bytes;
  recording::Header header;
  header.node = "n1";
  recording::AppendHeader(header, bytes);
  for (const Observation& o : observations) EXPECT_TRUE(recording::AppendObservation(o, bytes));
  return bytes;
}

TEST(JudgeRecording, GivesTheVerdictOfEachJobWithAndWithoutRecordedTicks) {
  TempDir dir;
  for (const bool ticks : {true, false}) {
    dir.Write("a.rec", Bytes(FailingRun(ticks)));
    const Judgement judgement = JudgeRecording(dir / "a.rec");
    ASSERT_TRUE(judgement.read.readable);
    EXPECT_EQ(judgement.document.node(), "n1");
    ASSERT_EQ(judgement.document.verdicts_size(), 1);
    const proto::Verdict& verdict = judgement.document.verdicts(0);
    EXPECT_EQ(verdict.job_id(), "8841");
    EXPECT_EQ(verdict.state(), proto::FINAL) << "the end is played on until the verdict is final";
    EXPECT_THAT(verdict.exception_type(), HasSubstr("ValueError"));
  }
}

TEST(JudgeRecording, EqualRecordingsGiveEqualBytes) {
  TempDir dir;
  dir.Write("a.rec", Bytes(FailingRun(true)));
  const std::string first = DocumentToJson(JudgeRecording(dir / "a.rec").document);
  EXPECT_EQ(DocumentToJson(JudgeRecording(dir / "a.rec").document), first);
}

TEST(JudgeRecording, ACutOffRecordingIsJudgedAndSaysSo) {
  TempDir dir;
  const std::string whole = Bytes(FailingRun(true));
  dir.Write("a.rec", std::string_view(whole).substr(0, whole.size() / 2));
  const Judgement judgement = JudgeRecording(dir / "a.rec");
  ASSERT_EQ(judgement.document.verdicts_size(), 1);
  const proto::DataQuality& quality = judgement.document.verdicts(0).data_quality();
  EXPECT_FALSE(quality.exact());
  EXPECT_GT(quality.truncated_at(), 0);
  EXPECT_LE(quality.truncated_at(), static_cast<int64_t>(whole.size() / 2));
  EXPECT_THAT(quality.notes(), Contains(HasSubstr("cut off")));
}

TEST(JudgeRecording, EveryCutIsSurvived) {
  TempDir dir;
  const std::string whole = Bytes(FailingRun(true));
  for (size_t size = 0; size < whole.size(); size += 37) {
    dir.Write("a.rec", std::string_view(whole).substr(0, size));
    const Judgement judgement = JudgeRecording(dir / "a.rec");
    EXPECT_EQ(judgement.read.readable, judgement.read.error.empty());
  }
}

TEST(JudgeRecording, WhatIsUnreadableHasNoVerdict) {
  TempDir dir;
  dir.Write("a.rec", "plain text, not a recording at all, and long enough to be none for certain");
  const Judgement judgement = JudgeRecording(dir / "a.rec");
  EXPECT_FALSE(judgement.read.readable);
  EXPECT_EQ(judgement.document.verdicts_size(), 0);
}

TEST(JudgeRecording, SaysEachChangeWithItsTime) {
  TempDir dir;
  dir.Write("a.rec", Bytes(FailingRun(true)));
  std::vector<std::pair<double, proto::Verdict>> changes;
  JudgeOptions options;
  options.changed = [&](Duration since, const proto::Verdict& verdict) {
    changes.emplace_back(since.seconds(), verdict);
  };
  Duration passed;
  options.pace = [&](Duration duration) { passed = passed + duration; };
  const Judgement judgement = JudgeRecording(dir / "a.rec", options);
  ASSERT_FALSE(changes.empty());
  for (size_t i = 1; i < changes.size(); ++i) {
    EXPECT_GE(changes[i].first, changes[i - 1].first);
    const proto::Verdict& a = changes[i - 1].second;
    const proto::Verdict& b = changes[i].second;
    EXPECT_FALSE(a.code() == b.code() && a.confidence() == b.confidence() &&
                 a.state() == b.state());
  }
  EXPECT_EQ(changes.back().second.code(), judgement.document.verdicts(0).code());
  EXPECT_EQ(changes.back().second.state(), proto::FINAL);
  EXPECT_EQ(passed, FailingRun(true).back().t - FailingRun(true).front().t);
}

// The recorder stands before an engine, segments roll, the beginning goes; judging what is left,
// from the state that it begins with, gives the very bytes that judging everything gives.
TEST(JudgeRecording, FromARestoredStateTheVerdictIsTheSame) {
  TempDir whole;
  TempDir rolled;
  whole.Write("a.rec", Bytes(FailingRun(true)));
  {
    engine::Engine engine({}, "n1");
    RecorderBudgets budgets;
    budgets.segment_bytes = 300;
    budgets.segments = 2;
    RecorderHooks hooks;
    hooks.state = [&] { return EngineState{"this build", engine.Save()}; };
    recording::Header header;
    header.node = "n1";
    Recorder recorder(rolled.fd(), header, hooks, budgets);
    ASSERT_TRUE(recorder.Open());
    for (const Observation& o : FailingRun(true)) {
      recorder.Accept(o);
      if (std::holds_alternative<Tick>(o.kind)) {
        engine.Tick(o.t);
      } else {
        engine.Accept(o);
      }
    }
  }
  ASSERT_GT(ListSegments(rolled.fd()).front(), 1);
  Judgement from_state = JudgeRecording(rolled.path());
  EXPECT_TRUE(from_state.read.exact);
  ASSERT_EQ(from_state.document.verdicts_size(), 1);
  // It says where it began; nothing else differs.
  from_state.document.mutable_verdicts(0)->mutable_data_quality()->clear_notes();
  Judgement all = JudgeRecording(whole / "a.rec");
  all.document.mutable_verdicts(0)->mutable_data_quality()->clear_notes();
  EXPECT_EQ(DocumentToJson(from_state.document), DocumentToJson(all.document));
}

}  // namespace
}  // namespace rankscope::replay
