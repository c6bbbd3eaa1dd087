// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cctype>

#include "exporter/replay/recorder.h"
#include "exporter/replay/segments.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::Script;
using ::rankscope::testing::Short;
using ::rankscope::testing::TempDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

recording::Header Header() {
  return {recording::kVersion, "0.1.0", "n1", "boot", kSignalTableVersion};
}

class ReadingTest : public ::testing::Test {
 protected:
  ReadResult Read(const std::string& path, bool take_state = true) {
    heard_.clear();
    ReadCallbacks callbacks;
    callbacks.header = [this](const recording::Header& header) {
      heard_.push_back("header " + header.node);
    };
    callbacks.begin = [this](bool ticks) {
      heard_.push_back(ticks ? "begin with ticks" : "begin");
    };
    callbacks.observation = [this](const Observation& o) { heard_.push_back(Short(o)); };
    callbacks.restore = [this, take_state](const EngineState& state) {
      heard_.push_back("restore " + state.blob);
      return take_state;
    };
    return ReadRecording(path, callbacks);
  }

  // A segment's bytes: a header, perhaps a state, observations.
  static std::string Bytes(const std::vector<Observation>& observations,
                           const std::string& state = "") {
    std::string bytes;
    recording::AppendHeader(Header(), bytes);
    if (!state.empty()) {
      Observation observation;
      observation.kind = EngineState{"b", state};
      EXPECT_TRUE(recording::AppendObservation(observation, bytes));
    }
    for (const Observation& o : observations) EXPECT_TRUE(recording::AppendObservation(o, bytes));
    return bytes;
  }

  TempDir dir_;
  Script script_;
  std::vector<std::string> heard_;
};

TEST_F(ReadingTest, AFileOfFramesOrJsonLines) {
  dir_.Write("a.rec", Bytes({script_.Line("x"), script_.OfTick()}));
  ReadResult read = Read(dir_ / "a.rec");
  EXPECT_TRUE(read.readable);
  EXPECT_TRUE(read.exact);
  EXPECT_FALSE(read.truncated_at);
  EXPECT_EQ(read.observations, 2);
  EXPECT_THAT(heard_, ElementsAre("header n1", "begin with ticks", "1 line x", "2 tick"));

  dir_.Write("a.jsonl",
             "{\"version\":1,\"node\":\"n2\"}\n{\"seq\":7,\"run\":{\"what\":\"BEGIN\"}}");
  read = Read(dir_ / "a.jsonl");
  EXPECT_TRUE(read.exact);
  EXPECT_THAT(heard_, ElementsAre("header n2", "begin", "7 run"));
}

TEST_F(ReadingTest, SaysWhereACutOffRecordingEnds) {
  const Observation x = script_.Line("x");
  const std::string whole = Bytes({x, script_.Line("y")});
  const size_t ends[] = {Bytes({}).size(), Bytes({x}).size(), whole.size()};
  for (size_t size = 1; size <= whole.size(); ++size) {
    dir_.Write("a.rec", std::string_view(whole).substr(0, size));
    const ReadResult read = Read(dir_ / "a.rec");
    size_t good = 0;
    for (const size_t end : ends) good = end <= size ? end : good;
    EXPECT_EQ(read.readable, good > 0) << size;
    if (good == 0) {
      EXPECT_THAT(read.error, HasSubstr("middle of a frame"));
    } else if (good == size) {
      EXPECT_TRUE(read.exact);
      EXPECT_FALSE(read.truncated_at);
    } else {
      EXPECT_FALSE(read.exact);
      EXPECT_EQ(read.truncated_at, static_cast<int64_t>(good));
      EXPECT_THAT(read.notes, ElementsAre(HasSubstr("cut off")));
    }
  }
}

TEST_F(ReadingTest, WhatIsNoRecordingIsSaidToBeNone) {
  dir_.Write("empty", "");
  dir_.Write("log", "Traceback (most recent call last):\n" + std::string(200, 'x'));
  std::filesystem::create_directory(dir_ / "folder");
  ASSERT_EQ(mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  const std::pair<const char*, const char*> cases[] = {{"empty", "is empty"},
                                                       {"log", "not a recording"},
                                                       {"folder", "holds no recording"},
                                                       {"pipe", "neither a file nor a directory"},
                                                       {"missing", "No such file"}};
  for (const auto& [name, reason] : cases) {
    const ReadResult read = Read(dir_ / name);
    EXPECT_FALSE(read.readable) << name;
    EXPECT_THAT(read.error, HasSubstr(reason));
    EXPECT_THAT(heard_, IsEmpty());
  }
}

TEST_F(ReadingTest, SegmentsInOrderAreExactAndTheirStatesAreNotNeeded) {
  dir_.Write(SegmentName(1), Bytes({script_.Line("a")}));
  dir_.Write(SegmentName(2), Bytes({script_.Line("b"), script_.OfTick()}, "s2"));
  dir_.Write("facts.rec", Bytes({script_.Exit(1)}));
  const ReadResult read = Read(dir_.path());
  EXPECT_TRUE(read.exact);
  EXPECT_THAT(read.notes, IsEmpty());
  EXPECT_THAT(heard_,
              ElementsAre("header n1", "begin with ticks", "1 line a", "2 line b", "3 tick"));
}

TEST_F(ReadingTest, AHoleIsBridgedByTheNextSegmentsState) {
  dir_.Write(SegmentName(1), Bytes({script_.Line("a")}));
  dir_.Write(SegmentName(3), Bytes({script_.Line("b")}, "s3"));
  ReadResult read = Read(dir_.path());
  EXPECT_TRUE(read.exact);
  EXPECT_THAT(read.notes, ElementsAre(HasSubstr("before bulk-00000003.rec are missing")));
  EXPECT_THAT(heard_, ElementsAre("header n1", "begin", "1 line a", "restore s3", "2 line b"));
  read = Read(dir_.path(), false);
  EXPECT_FALSE(read.exact);
  EXPECT_THAT(heard_, ElementsAre("header n1", "begin", "1 line a", "restore s3", "2 line b"));
  EXPECT_THAT(read.notes, Contains(HasSubstr("another build")));
}

TEST_F(ReadingTest, ADamagedSegmentInTheMiddleIsAHoleToo) {
  const std::string second = Bytes({script_.Line("b"), script_.Line("c")}, "s2");
  dir_.Write(SegmentName(1), Bytes({script_.Line("a")}));
  dir_.Write(SegmentName(2), second.substr(0, second.size() - 3));
  dir_.Write(SegmentName(3), Bytes({script_.Line("d")}, "s3"));
  const ReadResult read = Read(dir_.path());
  EXPECT_TRUE(read.exact);
  EXPECT_FALSE(read.truncated_at);
  EXPECT_THAT(heard_,
              ElementsAre("header n1", "begin", "3 line a", "1 line b", "restore s3", "4 line d"));
}

TEST_F(ReadingTest, ATornEndIsTruncated) {
  const std::string second = Bytes({script_.Line("b"), script_.Line("c")}, "s2");
  dir_.Write(SegmentName(1), Bytes({}));
  dir_.Write(SegmentName(2), second.substr(0, second.size() - 3));
  const ReadResult read = Read(dir_.path());
  EXPECT_FALSE(read.exact);
  ASSERT_TRUE(read.truncated_at);
  EXPECT_LT(*read.truncated_at, static_cast<int64_t>(second.size()) - 3);
}

TEST_F(ReadingTest, WithoutItsBeginningItGoesOnFromTheOldestState) {
  dir_.Write(SegmentName(4), Bytes({script_.Line("a")}, "s4"));
  dir_.Write(SegmentName(5), Bytes({script_.OfTick()}, "s5"));
  dir_.Write("facts.rec", Bytes({script_.Exit(1)}));
  const ReadResult read = Read(dir_.path());
  EXPECT_TRUE(read.exact);
  EXPECT_THAT(heard_,
              ElementsAre("header n1", "restore s4", "begin with ticks", "1 line a", "2 tick"));
}

TEST_F(ReadingTest, WithoutAUsableStateFactsAndKeptLinesComeByTimeAndEachOnce) {
  const Observation e1 = script_.Exit(1);
  const Observation l2 = script_.Line("kept");
  const Observation e3 = script_.Exit(3);
  const Observation l4 = script_.Line("kept too");
  const Observation l5 = script_.Line("in bulk");
  const Observation e6 = script_.Exit(6);
  dir_.Write("facts.rec", Bytes({e1, e3, e6}));
  dir_.Write("progress.rec", Bytes({l2, l4}));
  dir_.Write(SegmentName(4), Bytes({l5, script_.OfTick(), e6}, "s4"));
  const ReadResult read = Read(dir_.path(), false);
  EXPECT_FALSE(read.exact);
  EXPECT_TRUE(read.readable);
  EXPECT_THAT(heard_, ElementsAre("header n1", "restore s4", "begin", "1 exit", "2 line kept",
                                  "3 exit", "4 line kept too", "5 line in bulk", "6 exit"));
  EXPECT_EQ(read.observations, 6);
}

TEST_F(ReadingTest, FactsAloneAreReadToo) {
  dir_.Write("facts.rec", Bytes({script_.Exit(1)}));
  const ReadResult read = Read(dir_.path());
  EXPECT_TRUE(read.readable);
  EXPECT_FALSE(read.exact);
  EXPECT_THAT(heard_, ElementsAre("header n1", "begin", "1 exit"));
}

// A recorder's own directory, at every length of run, with and without a usable state: nothing
// twice, nothing out of order.
TEST_F(ReadingTest, WhatARecorderWroteComesBack) {
  for (const int count : {1, 5, 20, 60, 150}) {
    TempDir dir;
    Script script;
    std::vector<std::string> written;
    RecorderBudgets budgets;
    budgets.segment_bytes = 500;
    budgets.buffer_bytes = 90;
    RecorderHooks hooks;
    std::string last = "0";
    hooks.keep_line = [](std::string_view) { return true; };
    hooks.state = [&] { return EngineState{"b", last}; };
    {
      Recorder recorder(dir.fd(), Header(), hooks, budgets);
      ASSERT_TRUE(recorder.Open());
      for (int i = 0; i < count; ++i) {
        const Observation o = i % 5 == 0 ? script.Exit(i) : script.Line("line");
        recorder.Accept(o);
        last = std::to_string(o.seq);
        written.push_back(Short(o));
      }
    }
    // All lines are kept and no fact is dropped, so even without a state everything is there.
    ASSERT_TRUE(Read(dir.path(), false).readable);
    std::erase_if(
        heard_, [](const std::string& s) { return s.find(' ') == s.npos || !std::isdigit(s[0]); });
    EXPECT_EQ(heard_, written) << count;

    const ReadResult exact = Read(dir.path(), true);
    EXPECT_TRUE(exact.exact);
    std::string state = "0";
    std::vector<std::string> rest;
    for (const std::string& s : heard_) {
      if (s.rfind("restore ", 0) == 0) state = s.substr(8);
      if (std::isdigit(s[0])) rest.push_back(s);
    }
    EXPECT_EQ(rest, std::vector<std::string>(written.begin() + std::stoi(state), written.end()))
        << count;
  }
}

}  // namespace
}  // namespace rankscope::replay
