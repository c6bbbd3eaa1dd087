// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was not observed is told, makes a verdict inexact, and is never evidence about the job.
#include <gtest/gtest.h>

#include <string>

#include "detectors/model/event_types.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

std::string NotesOf(const proto::Verdict& verdict) {
  std::string notes;
  for (const std::string& note : verdict.data_quality().notes()) notes += note + "\n";
  return notes;
}

bool Tells(const proto::Verdict& verdict, const std::string& part) {
  return NotesOf(verdict).find(part) != std::string::npos;
}

void Ticks(Tape& tape, double from, double to) {
  for (double second = from; second <= to; ++second) tape.Add(second, Tick{});
}

Epoch Away(double since) {
  Epoch epoch{1'750'000'000'000'000'000, 1000, "boot-1"};
  epoch.away_since = AtSecond(since);
  return epoch;
}

// Two ranks that train from second 1 to 31.
Tape Training() {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 2, {100, 1});
  tape.StartRank(0.2, {101, 1}, {100, 1}, 0, 2);
  tape.StartRank(0.2, {102, 1}, {100, 1}, 1, 2);
  tape.Train(1, 1, 60, 0.5);
  return tape;
}

TEST(Hearing, WhatWasHeardFromBeginningToEndIsExact) {
  Tape tape = Training();
  tape.End(32, 0);
  tape.Closed(32);
  tape.Finish(40);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.code(), "G1");
  EXPECT_TRUE(verdict.data_quality().exact()) << NotesOf(verdict);
}

TEST(Hearing, SilenceIsAHangWhereSomebodyListensAndNoneWhereNobodyDoes) {
  Tape heard = Training();
  heard.Finish(150);
  EXPECT_EQ(JudgeTape(heard).code(), "C2");

  Tape unheard = Training();
  Ticks(unheard, 1, 31);
  Ticks(unheard, 140, 150);  // stopped for 109 s
  unheard.Finish(0);
  const proto::Verdict verdict = JudgeTape(unheard);
  EXPECT_EQ(verdict.code(), "G1");
  EXPECT_FALSE(verdict.data_quality().exact());
  EXPECT_TRUE(Tells(verdict,
                    "nothing was observed for 109 s, from 30.9 s after the job began: "
                    "rankscope was stopped"))
      << NotesOf(verdict);
}

TEST(Hearing, AHangAfterAGapIsFoundByTheTimeThatWasListenedTo) {
  Tape tape = Training();
  Ticks(tape, 1, 31);
  Ticks(tape, 140, 260);
  tape.Finish(0);
  Engine engine({}, "n1");
  PlayUntil(tape, engine, 0, 190);
  EXPECT_EQ(VerdictOf(engine).code(), "U0") << "50 s of silence were listened to";
  EXPECT_EQ(VerdictOf(engine).sub(), "stalling");
  EXPECT_EQ(JudgeTape(tape).code(), "C2");
}

TEST(Hearing, ATickThatIsLateByThreeSecondsIsNoGap) {
  Tape tape = Training();
  Ticks(tape, 1, 20);
  Ticks(tape, 24, 31);
  tape.Finish(0);
  EXPECT_TRUE(JudgeTape(tape).data_quality().exact());
}

TEST(Hearing, ARestartIsTold) {
  Tape tape = Training();
  Ticks(tape, 1, 20);
  tape.Add(22, Away(20));
  Ticks(tape, 23, 31);
  tape.End(32, 0);
  tape.Closed(32);
  Ticks(tape, 33, 40);
  tape.Finish(0);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_FALSE(verdict.data_quality().exact());
  EXPECT_TRUE(Tells(verdict,
                    "nothing was observed for 2 s, from 19.9 s after the job began: "
                    "rankscope was not running"))
      << NotesOf(verdict);
}

TEST(Hearing, AGapBeforeTheJobOrAfterItsEndIsNotItsMatter) {
  Tape tape;
  tape.Add(1, Tick{});
  tape.Add(0.9, Away(0.2));
  tape.Begin(1, {"python", "train.py"});
  tape.Train(1.1, 1, 60, 0.1);
  tape.End(8, 0);
  tape.Closed(8);
  Ticks(tape, 2, 9);
  Ticks(tape, 30, 40);
  tape.Finish(0);
  EXPECT_TRUE(JudgeTape(tape).data_quality().exact());
}

// A run known by its processes, whose end nobody sees.
Tape UnseenEnd(bool finished) {
  Tape tape;
  tape.Start(0.1, {101, 1}, {1, 1}, {{"SLURM_JOB_ID", "j1"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}});
  tape.Train(1, 1, 60, 0.1);
  if (finished) tape.Say(7.5, "Training complete.");
  Ticks(tape, 1, 8);
  return tape;
}

TEST(Hearing, AnEndThatNobodySawIsNoGoodEnd) {
  Tape tape = UnseenEnd(false);
  tape.Add(20, Away(8));
  tape.Exit(20.5, {101, 1}, 0, false);
  Ticks(tape, 21, 30);
  tape.Finish(0);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.state(), proto::FINAL);
  EXPECT_EQ(verdict.code(), "U0") << VerdictToJson(verdict);

  Tape seen = UnseenEnd(false);
  seen.Exit(8.5, {101, 1}, 0);
  Ticks(seen, 9, 20);
  seen.Finish(0);
  EXPECT_EQ(JudgeTape(seen).code(), "G1");
}

TEST(Hearing, TextThatEndedInAGapShowsNoLearningToTheEnd) {
  Tape tape = UnseenEnd(false);
  tape.Add(20, Away(8));
  tape.Exit(22.5, {101, 1}, 0);  // seen, and good; what it had printed meanwhile was not heard
  Ticks(tape, 21, 35);
  tape.Finish(0);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_EQ(verdict.code(), "G1");
  EXPECT_EQ(verdict.sub(), "unverifiable");
}

TEST(Hearing, AnEndThatNobodySawIsGoodWhereTheTrainingSaidThatItWasOver) {
  Tape tape = UnseenEnd(true);
  tape.Add(20, Away(8));
  tape.Exit(20.5, {101, 1}, 0, false);
  Ticks(tape, 21, 30);
  tape.Finish(0);
  EXPECT_EQ(JudgeTape(tape).code(), "G1");
}

TEST(Hearing, LinesThatDoNotMeetAreALoss) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 30, 0.1);
  LogLine line;
  line.stream = 1;
  line.stream_name = "stdout";
  line.job_id = "j1";
  line.offset = 5000;
  line.text = "step 31 loss 0.7 lr 0.01 step_time 0.080s";
  line.end = LineEnd::kLf;
  tape.Add(4.5, line);
  tape.End(8, 0);
  tape.Closed(8);
  tape.Finish(12);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_FALSE(verdict.data_quality().exact());
  EXPECT_GT(verdict.data_quality().lost_bytes(), 3000);
  EXPECT_TRUE(Tells(verdict, "the last of them before byte 5000")) << NotesOf(verdict);
}

SourceState Source(Availability state, int64_t lost = 0, const char* name = "stdio") {
  SourceState source{4, name, state, "", lost, Seconds(1)};
  source.lost_untold = lost;
  return source;
}

TEST(Hearing, ASourceThatGoesAndOneThatComesLateAndOneThatLosesAreTold) {
  Tape tape;
  tape.Add(0, Source(Availability::kUp));
  tape.Add(0, Source(Availability::kUp, 0, "kmsg"));
  tape.Begin(0.1);
  tape.Train(1, 1, 60, 0.5);
  tape.Add(10, Source(Availability::kDown));
  tape.Add(14, Source(Availability::kUp));
  tape.Add(15, Source(Availability::kUp, 0, "nvml"));
  tape.Add(20, Source(Availability::kUp, 7, "kmsg"));
  tape.Add(21, Source(Availability::kDown, 0, "slurm"));  // it tells later what it knows
  tape.Finish(25);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_FALSE(verdict.data_quality().exact());
  EXPECT_EQ(verdict.data_quality().lost_events(), 7);
  EXPECT_TRUE(
      Tells(verdict, "source stdio was not available for 4 s, first 9.9 s after the job began"));
  EXPECT_TRUE(Tells(verdict, "source nvml was available only from 14.9 s after the job began"));
  EXPECT_TRUE(Tells(verdict, "source kmsg lost 7 events or bytes")) << NotesOf(verdict);
  EXPECT_FALSE(Tells(verdict, "slurm"));
}

TEST(Hearing, ASourceThatWasNeverThereIsAStoreThatIsAbsentAndNoGap) {
  Tape tape;
  tape.Add(0, Source(Availability::kDown));
  tape.Begin(0.1);
  tape.Train(1, 1, 60, 0.1);
  tape.Add(5, Source(Availability::kUnsupported));
  tape.Finish(8);
  EXPECT_TRUE(JudgeTape(tape).data_quality().exact());
}

TEST(Hearing, AProcessThatWasThereBeforeIsTold) {
  Tape tape;
  ProcessStart start;
  start.key = {101, 1};
  start.comm = "python";
  start.env = {{"SLURM_JOB_ID", "j1"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}};
  start.complete = start.preexisting = true;
  tape.Add(0.1, start);
  tape.Train(1, 1, 60, 0.1);
  tape.Finish(8);
  const proto::Verdict verdict = JudgeTape(tape);
  EXPECT_FALSE(verdict.data_quality().exact());
  EXPECT_TRUE(Tells(verdict, "ran before rankscope observed this node")) << NotesOf(verdict);
}

TEST(Hearing, GapsOutliveARestoredState) {
  Tape tape = Training();
  Ticks(tape, 1, 20);
  tape.Add(22, Away(20));
  Ticks(tape, 23, 35);
  tape.Finish(0);
  Engine whole({}, "n1"), first({}, "n1"), second({}, "n1");
  Play(tape, whole, 0, tape.size());
  const size_t at = PlayUntil(tape, first, 0, 25);
  ASSERT_TRUE(second.Restore(first.Save()));
  Play(tape, second, at, tape.size());
  EXPECT_EQ(AnswersOf(second), AnswersOf(whole));
}

TEST(Hearing, OutputThatWasReadFromFilesIsNoUnknown) {
  for (const bool read : {false, true}) {
    Tape tape = Training();
    LogLine line;
    line.stream = 1 << 16;
    line.job_id = "j1";
    line.rank = 0;
    line.text = "heard in the kernel";
    tape.Add(30.5, line);
    tape.Add(31.5, Away(31));
    Event event;
    event.rank.job_id = "j1";
    event.type = WireType(EventType::kOutputRead);
    if (read) tape.Add(32, event);
    tape.Finish(40);
    const proto::Verdict verdict = JudgeTape(tape);
    EXPECT_FALSE(verdict.data_quality().exact());
    EXPECT_TRUE(Tells(verdict, "rankscope was not running")) << NotesOf(verdict);
    EXPECT_EQ(Tells(verdict, "meanwhile is not known"), !read) << NotesOf(verdict);
    EXPECT_EQ(Tells(verdict, "was read from its files"), read) << NotesOf(verdict);
  }
}

// A job that ran for hours before the daemon: it prints to a file, or to what cannot be read back.
struct Late {
  bool read = false;   // its output from the beginning
  bool whole = false;  // and that this is all
};

Tape LateTape(const Late& late, double train_until, const std::string& last) {
  Tape tape;
  ProcessStart start;
  start.key = {101, 1};
  start.comm = "python";
  start.argv = {"python", "train.py"};
  start.env = {{"SLURM_JOB_ID", "j1"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}};
  start.complete = start.preexisting = true;
  tape.Add(0.1, start);
  int step = 1;
  int64_t offset = 0;
  const auto say = [&](double second, bool past) {
    char text[96];
    std::snprintf(text, sizeof text, "step %d loss %.4f lr 0.01", step,
                  0.5 + 3.0 / (1 + 0.01 * step) + 0.01 * ((step * 7919) % 13 - 6));
    ++step;
    LogLine line;
    line.stream = 1 << 16;
    line.stream_name = "rank 0 stdout";
    line.job_id = "j1";
    line.writer = start.key;
    line.rank = 0;
    line.offset = offset;
    line.text = text;
    line.end = LineEnd::kLf;
    if (past && late.read) {
      Event event;
      event.rank.job_id = "j1";
      event.type = WireType(EventType::kOutputRead);
      event.num = {{"stream", 1 << 16}, {"end", offset + static_cast<int64_t>(line.text.size())}};
      tape.Add(second, event);
    }
    offset += static_cast<int64_t>(line.text.size()) + 1;
    if (!past || late.read) tape.Add(second, line);
  };
  for (int i = 0; i < 4000; ++i) say(1.5 + 1e-5 * i, true);
  Event event;
  event.rank.job_id = "j1";
  event.type = WireType(EventType::kOutputRead);
  if (late.whole) tape.Add(1.6, event);
  for (double second = 3; second < train_until; second += 2) say(second, false);
  for (double second = 1; second < 160; ++second)
    tape.Add(second, SampleBatch{{Subject::Kind::kProcess, {}, start.key, {}},
                                 {{SignalId::kCpuSeconds, 7200 + second}},
                                 {}});
  if (!last.empty()) {
    LogLine line;
    line.stream = (1 << 16) + 1;
    line.stream_name = "rank 0 stderr";
    line.job_id = "j1";
    line.writer = start.key;
    line.rank = 0;
    line.end = LineEnd::kLf;
    for (size_t begin = 0; begin < last.size();) {
      const size_t end = last.find('\n', begin);
      const std::string one = last.substr(begin, end - begin);
      line.text = one;
      tape.Add(train_until + 1, line);
      line.offset += static_cast<int64_t>(one.size()) + 1;
      begin = end + 1;
    }
    tape.Exit(train_until + 2, start.key, 1 << 8);
  }
  return tape;
}

constexpr char kBadBatch[] =
    "Traceback (most recent call last):\n"
    "  File \"/home/u/train.py\", line 9, in <module>\n"
    "    main()\n"
    "  File \"/home/u/train.py\", line 7, in main\n"
    "    table[key]\n"
    "KeyError: 'missing_column'\n";

TEST(Late, ALogOfHoursThatIsReadAtOnceIsNoBurst) {
  Tape tape = LateTape({true, true}, 200, "");
  tape.Finish(155);
  Engine engine({}, "n1");
  for (size_t i = 0; i < tape.size(); ++i) {
    if (!std::holds_alternative<Tick>(tape[i].kind)) {
      engine.Accept(tape[i]);
      continue;
    }
    engine.Tick(tape[i].t);
    const proto::Verdict verdict = VerdictOf(engine, "j1");
    EXPECT_TRUE(verdict.code() == "G1" || verdict.code() == "U0") << VerdictToJson(verdict);
  }
  const proto::Verdict verdict = VerdictOf(engine, "j1");
  EXPECT_EQ(verdict.code(), "G1");
  EXPECT_EQ(verdict.sub(), "healthy") << VerdictToJson(verdict);
  EXPECT_TRUE(Tells(verdict, "it was read from its files")) << NotesOf(verdict);
  EXPECT_FALSE(Tells(verdict, "nor what was printed")) << NotesOf(verdict);
}

TEST(Late, WhatWasPrintedBeforeTellsHowFarTheJobHadCome) {
  for (const bool read : {true, false}) {
    Tape tape = LateTape({read, read}, 2, kBadBatch);
    tape.Finish(60);
    const proto::Verdict verdict = JudgeTape(tape);
    EXPECT_TRUE(verdict.code() == "X1" || !read) << VerdictToJson(verdict);
    EXPECT_EQ(verdict.exception_type(), "KeyError");
    // That no step was printed is not known where nothing can be read back.
    EXPECT_EQ(verdict.confidence() > 0.5, read) << VerdictToJson(verdict);
    EXPECT_EQ(Tells(verdict, "nor what was printed"), !read) << NotesOf(verdict);
  }
}

// How often it used to print is not known: it is no hang by that alone. That it goes on is known
// once a record has come after another.
TEST(Late, AJobThatHasPrintedNothingSinceIsNotHealthy) {
  for (const double until : {3.0, 50.0, 150.0}) {
    Tape tape = LateTape({true, true}, 3, "");
    tape.Finish(until);
    const proto::Verdict verdict = JudgeTape(tape);
    EXPECT_EQ(verdict.code(), "U0") << until << VerdictToJson(verdict);
  }
  Tape goes_on = LateTape({true, true}, 8, "");
  goes_on.Finish(15);
  EXPECT_EQ(JudgeTape(goes_on).code(), "G1");
}

}  // namespace
}  // namespace rankscope::engine
