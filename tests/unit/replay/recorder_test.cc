// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "exporter/replay/reading.h"
#include "exporter/replay/segments.h"
#include "tests/support/observations.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::Script;
using ::rankscope::testing::Short;
using ::rankscope::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

recording::Header Header() {
  return {recording::kVersion, "0.1.0", "n1", "boot", kSignalTableVersion};
}

// A few lines fill a segment.
RecorderBudgets Tiny() {
  RecorderBudgets budgets;
  budgets.segment_bytes = 600;
  budgets.segments = 3;
  budgets.buffer_bytes = 128;
  return budgets;
}

std::vector<std::string> FramesOf(const TempDir& dir, const std::string& name) {
  std::vector<std::string> out;
  ReadCallbacks callbacks;
  callbacks.observation = [&](const Observation& o) { out.push_back(Short(o)); };
  EXPECT_TRUE(ReadRecording(dir / name, callbacks).readable) << name;
  return out;
}

TEST(Recorder, WritesEverythingInOrderAndFactsTwice) {
  TempDir dir;
  {
    Recorder recorder(dir.fd(), Header());
    ASSERT_TRUE(recorder.Open());
    for (const Observation& observation : ::rankscope::testing::OneOfEachKind())
      recorder.Accept(observation);
    EXPECT_TRUE(recorder.exact());
    EXPECT_EQ(recorder.counters().observations,
              static_cast<int64_t>(::rankscope::testing::OneOfEachKind().size()));
  }
  EXPECT_THAT(dir.Names(), ElementsAre("bulk-00000001.rec", "facts.rec"));
  EXPECT_EQ(FramesOf(dir, "bulk-00000001.rec").size(),
            ::rankscope::testing::OneOfEachKind().size() - 1);  // no state
  std::string facts;
  recording::AppendHeader(Header(), facts);
  for (const Observation& o : ::rankscope::testing::OneOfEachKind()) {
    if (std::holds_alternative<LogLine>(o.kind) || std::holds_alternative<SampleBatch>(o.kind) ||
        std::holds_alternative<Tick>(o.kind) || std::holds_alternative<EngineState>(o.kind)) {
      continue;
    }
    ASSERT_TRUE(recording::AppendObservation(o, facts));
  }
  EXPECT_EQ(dir.Read("facts.rec"), facts);
}

TEST(Recorder, OneThatIsStartedAgainAndAgainKeepsItsBeginning) {
  TempDir dir;
  constexpr int kStarts = 12;  // of which each writes a little
  for (int i = 0; i < kStarts; ++i) {
    Recorder recorder(dir.fd(), Header(), {}, Tiny());
    ASSERT_TRUE(recorder.Open());
    Observation tick;
    tick.t = {i + 1};
    tick.kind = Tick{};
    recorder.Accept(tick);
    EXPECT_TRUE(recorder.exact());
  }
  EXPECT_THAT(dir.Names(), Contains("bulk-00000001.rec"));
  EXPECT_EQ(FramesOf(dir, ".").size(), static_cast<size_t>(kStarts));
}

TEST(Recorder, FilesAreTheOwnersAlone) {
  TempDir dir;
  Recorder recorder(dir.fd(), Header());
  ASSERT_TRUE(recorder.Open());
  Script script;
  recorder.Accept(script.Exit(1));
  for (const std::string& name : dir.Names()) {
    struct stat status = {};
    ASSERT_EQ(stat((dir / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
  }
}

TEST(Recorder, TheHeaderIsThereAtOnceAndTheRestAfterFlush) {
  TempDir dir;
  Recorder recorder(dir.fd(), Header());
  ASSERT_TRUE(recorder.Open());
  std::string header;
  recording::AppendHeader(Header(), header);
  EXPECT_EQ(dir.Read(SegmentName(1)), header);
  Script script;
  recorder.Accept(script.Line("a"));
  EXPECT_EQ(dir.Read(SegmentName(1)), header);
  recorder.Sync();
  EXPECT_GT(dir.Read(SegmentName(1)).size(), header.size());
  EXPECT_EQ(recorder.counters().errors, 0);
}

TEST(Recorder, RotatesKeepsLinesWorthKeepingAndBeginsSegmentsWithTheState) {
  TempDir dir;
  int states = 0;
  int64_t accepted = 0;
  RecorderHooks hooks;
  hooks.keep_line = [](std::string_view line) { return line.find("keep") != line.npos; };
  hooks.state = [&] {
    ++states;
    return EngineState{"build", std::to_string(accepted)};
  };
  Script script;
  std::vector<std::string> kept;
  {
    Recorder recorder(dir.fd(), Header(), hooks, Tiny());
    ASSERT_TRUE(recorder.Open());
    for (int i = 0; i < 100; ++i) {
      const Observation o =
          i % 10 == 0 ? script.Exit(i) : script.Line(i % 3 == 0 ? "keep this one" : "and not this");
      if (i % 10 != 0 && i % 3 == 0) kept.push_back(Short(o));
      recorder.Accept(o);
      accepted = o.seq;
    }
    EXPECT_TRUE(recorder.exact());
    EXPECT_EQ(recorder.counters().lost, 0);
  }
  const std::vector<int64_t> numbers = ListSegments(dir.fd());
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_GT(numbers.front(), 3);
  EXPECT_EQ(states, static_cast<int>(numbers.back()) - 1);
  EXPECT_EQ(FramesOf(dir, "facts.rec").size(), 10u);

  // Each segment's state is that of all observations before its first.
  for (const int64_t number : numbers) {
    std::string state;
    int64_t first = 0;
    ReadCallbacks callbacks;
    callbacks.restore = [&](const EngineState& s) {
      state = s.blob;
      return true;
    };
    callbacks.observation = [&](const Observation& o) { first = first == 0 ? o.seq : first; };
    EXPECT_TRUE(ReadRecording(dir / SegmentName(number), callbacks).exact);
    EXPECT_EQ(state, std::to_string(first - 1));
  }

  // The lines kept are exactly those of the segments that are gone.
  const std::vector<std::string> progress = FramesOf(dir, "progress.rec");
  std::vector<std::string> expected;
  const std::vector<std::string> bulk = FramesOf(dir, SegmentName(numbers.front()));
  const int64_t first_left = std::stoll(bulk.front());
  for (const std::string& one : kept) {
    if (std::stoll(one) < first_left) expected.push_back(one);
  }
  EXPECT_EQ(progress, expected);
}

TEST(Recorder, PastItsBudgetAFactIsDroppedAndSaidToBe) {
  TempDir dir;
  RecorderBudgets budgets = Tiny();
  budgets.facts_bytes = 200;
  budgets.progress_bytes = 200;
  RecorderHooks hooks;
  hooks.keep_line = [](std::string_view) { return true; };
  hooks.state = [] { return EngineState{"b", "s"}; };
  Recorder recorder(dir.fd(), Header(), hooks, budgets);
  ASSERT_TRUE(recorder.Open());
  Script script;
  for (int i = 0; i < 100; ++i) {
    recorder.Accept(script.Exit(i));
    recorder.Accept(script.Line("a line"));
  }
  recorder.Flush();
  EXPECT_FALSE(recorder.exact());
  EXPECT_GT(recorder.counters().facts_dropped, 80);
  EXPECT_GT(recorder.counters().progress_dropped, 0);
  EXPECT_LE(dir.Read("facts.rec").size(), 200u);
  EXPECT_GT(dir.Read("facts.rec").size(), 150u);
  EXPECT_LE(dir.Read("progress.rec").size(), 200u);
  EXPECT_EQ(recorder.counters().lost, 0);
}

TEST(Recorder, WithoutAStateARemovedSegmentIsNotExact) {
  TempDir dir;
  Recorder recorder(dir.fd(), Header(), {}, Tiny());
  ASSERT_TRUE(recorder.Open());
  Script script;
  EXPECT_TRUE(recorder.exact());
  for (int i = 0; i < 100; ++i) recorder.Accept(script.Line("line"));
  EXPECT_FALSE(recorder.exact());
  EXPECT_EQ(recorder.counters().lost, 0);
}

TEST(Recorder, GoesOnBehindAnEarlierProcessAndMendsATornFact) {
  TempDir dir;
  Script script;
  {
    Recorder recorder(dir.fd(), Header(), {}, Tiny());
    ASSERT_TRUE(recorder.Open());
    recorder.Accept(script.Exit(1));
  }
  const std::string facts = dir.Read("facts.rec");
  dir.Write("facts.rec", facts + "\x7F half a frame");
  RecorderHooks hooks;
  hooks.state = [] { return EngineState{"b", "s"}; };
  {
    Recorder recorder(dir.fd(), Header(), hooks, Tiny());
    ASSERT_TRUE(recorder.Open());
    recorder.Accept(script.Exit(2));
  }
  EXPECT_THAT(ListSegments(dir.fd()), ElementsAre(1, 3));
  EXPECT_THAT(FramesOf(dir, "facts.rec"), ElementsAre("1 exit", "2 exit"));
  EXPECT_THAT(FramesOf(dir, SegmentName(3)), ElementsAre("2 exit"));
}

// Descriptors of this process that are open in the directory.
int OpenIn(const TempDir& dir) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry, gone).string().starts_with(dir.path());
  }
  return count;
}

TEST(Recorder, RestsWithoutAnOpenFileAndGoesOnInTheSameSegment) {
  TempDir dir;
  Script script;
  Recorder recorder(dir.fd(), Header());
  ASSERT_TRUE(recorder.Open());
  recorder.Accept(script.Exit(1));
  const int before = OpenIn(dir);
  for (int i = 2; i < 5; ++i) {
    recorder.Rest();
    EXPECT_EQ(OpenIn(dir), 1) << "the test's own";
    recorder.Wake(dir.fd());
    recorder.Accept(script.Exit(i));
    EXPECT_EQ(OpenIn(dir), before);
  }
  recorder.Rest();
  EXPECT_TRUE(recorder.exact());
  EXPECT_EQ(recorder.counters().errors, 0);
  EXPECT_THAT(dir.Names(), ElementsAre("bulk-00000001.rec", "facts.rec"));
  EXPECT_THAT(FramesOf(dir, "bulk-00000001.rec"),
              ElementsAre("1 exit", "2 exit", "3 exit", "4 exit"));
  EXPECT_THAT(FramesOf(dir, "facts.rec"), ElementsAre("1 exit", "2 exit", "3 exit", "4 exit"));
}

TEST(Recorder, ASegmentThatSomebodyChangedMeanwhileIsNotContinued) {
  TempDir dir;
  Script script;
  Recorder recorder(dir.fd(), Header(), {}, Tiny());
  ASSERT_TRUE(recorder.Open());
  recorder.Accept(script.Exit(1));
  recorder.Rest();
  std::filesystem::remove(dir / "bulk-00000001.rec");
  recorder.Wake(dir.fd());
  recorder.Accept(script.Exit(2));
  EXPECT_FALSE(recorder.exact());
  Observation later = script.Exit(3);
  later.t = later.t + Seconds(60);
  recorder.Accept(later);
  recorder.Flush();
  EXPECT_THAT(FramesOf(dir, SegmentName(3)), ElementsAre("3 exit"));
}

TEST(Recorder, AStateLargerThanAFrameIsWrittenInParts) {
  TempDir dir;
  const std::string blob(3 * recording::kFrameCap, 'x');
  RecorderHooks hooks;
  hooks.state = [&] { return EngineState{"b", blob}; };
  RecorderBudgets budgets = Tiny();
  budgets.segment_bytes = 100;
  Script script;
  {
    Recorder recorder(dir.fd(), Header(), hooks, budgets);
    ASSERT_TRUE(recorder.Open());
    for (int i = 0; i < 4; ++i) recorder.Accept(script.Line(std::string(60, 'l')));
    EXPECT_EQ(recorder.counters().errors, 0);
  }
  std::string read;
  ReadCallbacks callbacks;
  callbacks.restore = [&](const EngineState& state) {
    read = state.blob;
    return state.build == "b";
  };
  const ReadResult result =
      ReadRecording(dir / SegmentName(ListSegments(dir.fd()).back()), callbacks);
  EXPECT_TRUE(result.exact);
  EXPECT_EQ(read, blob);
}

TEST(Recorder, AnObservationTooLargeForAFrameIsLostAndSaidToBe) {
  TempDir dir;
  Recorder recorder(dir.fd(), Header());
  ASSERT_TRUE(recorder.Open());
  Script script;
  ProcessStart start;
  start.argv.assign(3, std::string(recording::kFrameCap / 2, 'a'));
  recorder.Accept(script.Next(start));
  recorder.Accept(script.Line("after"));
  recorder.Flush();
  EXPECT_EQ(recorder.counters().lost, 1);
  EXPECT_FALSE(recorder.exact());
  EXPECT_THAT(FramesOf(dir, SegmentName(1)), ElementsAre("2 line after"));
}

TEST(Recorder, ADirectoryThatCannotBeWrittenIsAnErrorAndNoMore) {
  TempDir dir;
  OwnedFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Recorder recorder(null.get(), Header());
  const Status opened = recorder.Open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error(), HasSubstr("bulk-00000001.rec"));
  Script script;
  for (int i = 0; i < 10; ++i) recorder.Accept(script.Exit(i));
  recorder.Sync();
  EXPECT_EQ(recorder.counters().lost, 10);
  EXPECT_TRUE(recorder.counters().broken);
  EXPECT_GT(recorder.counters().errors, 0);
  EXPECT_NE(recorder.counters().last_error, 0);
}

TEST(Recorder, FollowsNoLink) {
  TempDir dir;
  TempDir elsewhere;
  elsewhere.Write("victim", "precious");
  std::filesystem::create_symlink(elsewhere / "victim", dir / "facts.rec");
  Recorder recorder(dir.fd(), Header());
  ASSERT_TRUE(recorder.Open());
  Script script;
  recorder.Accept(script.Exit(1));
  recorder.Sync();
  EXPECT_EQ(elsewhere.Read("victim"), "precious");
  EXPECT_EQ(recorder.counters().facts_dropped, 1);
}

}  // namespace
}  // namespace rankscope::replay
