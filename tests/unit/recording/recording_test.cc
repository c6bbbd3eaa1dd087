// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/recording/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "detectors/proto/recording.pb.h"
#include "tests/unit/recording/frames.h"

namespace rankscope::recording {
namespace {

using ::testing::HasSubstr;

Header ExampleHeader() {
  return {kVersion, "0.1.0", "n1", "boot", kSignalTableVersion};
}

std::string ExampleRecording() {
  std::string bytes;
  AppendHeader(ExampleHeader(), bytes);
  for (const Observation& observation : ::rankscope::testing::OneOfEachKind()) {
    EXPECT_TRUE(AppendObservation(observation, bytes));
  }
  return bytes;
}

TEST(Recording, EveryKindComesBackWhole) {
  Heard heard;
  Decoder decoder;
  decoder.Feed(ExampleRecording(), HeaderInto(heard), FrameInto(heard));
  EXPECT_FALSE(decoder.failed()) << decoder.error();
  ASSERT_EQ(heard.headers.size(), 1u);
  EXPECT_EQ(heard.headers[0].node, "n1");
  EXPECT_EQ(heard.headers[0].tool_version, "0.1.0");
  const auto all = ::rankscope::testing::OneOfEachKind();
  ASSERT_EQ(heard.frames.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(heard.frames[i], Frame(all[i])) << "kind " << all[i].kind.index();
  EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(ExampleRecording().size()));
  EXPECT_EQ(decoder.unknown_signals(), 0);
}

TEST(Recording, FieldsOfTheModelReachTheirFieldsOnTheWire) {
  const auto all = ::rankscope::testing::OneOfEachKind();
  std::vector<proto::Observation> wire;
  for (const Observation& observation : all) wire.push_back(Message(Frame(observation)));
  EXPECT_EQ(wire[0].epoch().wall_offset_ns(), 1'700'000'000'000'000'000);
  EXPECT_EQ(wire[2].source_state().state(), proto::DENIED);
  EXPECT_EQ(wire[3].run().what(), proto::RunMark::END);
  EXPECT_TRUE(wire[3].run().status_known());
  EXPECT_EQ(wire[3].run().error(), "no such file");
  EXPECT_EQ(wire[3].run().uid(), 1000u);
  EXPECT_EQ(wire[4].start().env(0).key(), "RANK");
  EXPECT_EQ(wire[4].start().argv_size(), 3);
  EXPECT_EQ(wire[4].start().job_id(), "8841");
  EXPECT_EQ(wire[5].exit().wait_status(), 139);
  EXPECT_EQ(wire[6].signal().si_code(), -6);
  EXPECT_EQ(wire[7].line().offset(), 18231);
  EXPECT_EQ(wire[7].line().lost_before(), 99);
  EXPECT_EQ(wire[8].line().text(), "");
  EXPECT_EQ(wire[8].line().raw(), std::string("caf\xE9 \x00\xFF", 7));
  EXPECT_EQ(wire[9].samples().rank().rank(), 3);
  EXPECT_EQ(wire[9].samples().signal(1), 4u);
  EXPECT_EQ(wire[15].scheduler().value(), "NODE_FAIL");
  EXPECT_EQ(wire[16].record().failed_node(), "n1");
  EXPECT_TRUE(wire[16].record().has_restarts());
  EXPECT_FALSE(wire[16].record().has_elapsed_seconds());
  EXPECT_EQ(wire[17].event().num(0).value(), -1);
  EXPECT_EQ(wire[18].state().blob().size(), 3u);
}

TEST(Recording, LinesWrittenByHandEqualTheMessagesOwnBytes) {
  std::mt19937 random(7);
  const auto number = [&]() -> int64_t {
    switch (random() % 5) {
      case 0:
        return 0;
      case 1:
        return static_cast<int64_t>(random() % 200);
      case 2:
        return -static_cast<int64_t>(random() % 1000);
      case 3:
        return std::numeric_limits<int64_t>::max();
      default:
        return static_cast<int64_t>(random()) << 20;
    }
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string text(random() % 300, random() % 4 == 0 ? '\xE9' : 'x');
    LogLine line;
    line.stream = static_cast<uint32_t>(number());
    line.stream_name = random() % 2 == 0 ? "stdout" : "";
    line.job_id = random() % 2 == 0 ? std::string(random() % 200, 'j') : "";
    line.writer = {static_cast<int32_t>(number()), number()};
    line.offset = number();
    line.text = text;
    line.end = static_cast<LineEnd>(random() % 5);
    line.cut_bytes = static_cast<int32_t>(number());
    line.redactions = static_cast<int32_t>(number());
    line.lost_before = number();
    line.rank = static_cast<int32_t>(number() % 1000) - 1;
    line.local_rank = static_cast<int32_t>(number() % 9) - 1;
    line.restart = static_cast<int32_t>(number() % 3) - 1;
    line.printed_ms = number();
    line.file = {static_cast<uint64_t>(number()), static_cast<uint64_t>(number()), number()};
    Observation observation;
    observation.t.ns = number();
    observation.seq = number();
    observation.source = static_cast<uint32_t>(number());
    observation.node = random() % 2 == 0 ? "n1" : "";
    observation.kind = line;
    const std::string frame = Frame(observation);
    const std::string payload = Message(frame).SerializeAsString();
    ASSERT_EQ(frame.substr(frame.size() - payload.size()), payload);
    ASSERT_LE(frame.size() - payload.size(), 3u);
  }
}

TEST(Recording, StringsThatAreNotUtf8AreRepairedSoThatTheFrameCanBeRead) {
  Observation observation;
  observation.node = "n\xFF";
  observation.kind = ProcessStart{};
  std::get<ProcessStart>(observation.kind).argv = {"--name=\xE9"};
  LogLine line;
  line.stream_name = "out\xFE.log";
  line.text = "ok";
  Observation spoken;
  spoken.kind = line;
  std::string bytes;
  AppendHeader({kVersion, "v\xFF", "n\xFF", "", 1}, bytes);
  ASSERT_TRUE(AppendObservation(observation, bytes));
  ASSERT_TRUE(AppendObservation(spoken, bytes));
  Heard heard;
  Decoder decoder;
  decoder.Feed(bytes, HeaderInto(heard), FrameInto(heard));
  EXPECT_FALSE(decoder.failed()) << decoder.error();
  ASSERT_EQ(heard.frames.size(), 2u);
  EXPECT_EQ(Message(heard.frames[0]).start().argv(0), "--name=\xEF\xBF\xBD");
  EXPECT_EQ(Message(heard.frames[1]).line().stream_name(), "out\xEF\xBF\xBD.log");
}

TEST(Recording, PiecesOfAnySizeGiveTheSame) {
  const std::string bytes = ExampleRecording();
  for (const size_t piece : {1u, 2u, 3u, 7u, 64u, 1000u}) {
    Heard heard;
    Decoder decoder;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      decoder.Feed(std::string_view(bytes).substr(at, piece), HeaderInto(heard), FrameInto(heard));
    }
    EXPECT_FALSE(decoder.failed());
    EXPECT_EQ(heard.frames.size(), ::rankscope::testing::OneOfEachKind().size());
    EXPECT_EQ(decoder.pending(), 0u);
  }
}

TEST(Recording, CutAtEveryByteGivesTheWholeFramesBefore) {
  const std::string bytes = ExampleRecording();
  std::vector<int64_t> ends;
  {
    std::string prefix;
    AppendHeader(ExampleHeader(), prefix);
    ends.push_back(static_cast<int64_t>(prefix.size()));
    for (const Observation& observation : ::rankscope::testing::OneOfEachKind()) {
      ASSERT_TRUE(AppendObservation(observation, prefix));
      ends.push_back(static_cast<int64_t>(prefix.size()));
    }
  }
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Heard heard;
    Decoder decoder;
    decoder.Feed(std::string_view(bytes).substr(0, cut), HeaderInto(heard), FrameInto(heard));
    decoder.Finish(HeaderInto(heard), FrameInto(heard));
    ASSERT_FALSE(decoder.failed()) << cut;
    size_t whole = 0;
    int64_t good = 0;
    for (const int64_t end : ends) {
      if (end > static_cast<int64_t>(cut)) break;
      ++whole;
      good = end;
    }
    ASSERT_EQ(heard.headers.size() + heard.frames.size(), whole) << cut;
    ASSERT_EQ(decoder.good_bytes(), good) << cut;
    ASSERT_EQ(decoder.pending(), cut - static_cast<size_t>(good)) << cut;
  }
}

TEST(Recording, AHeaderFrameOfThe123BytesThatReadAsABraceIsNotJson) {
  for (const size_t length : {9u, 10u, 13u, 32u, 123u}) {  // tab, LF, CR, blank, '{'
    Header header;
    std::string bytes;
    AppendHeader(header, bytes);
    // version, table version and the tags of the two strings take the rest
    header.node = std::string(length - (bytes.size() - 1) - 2, 'n');
    bytes.clear();
    AppendHeader(header, bytes);
    if (bytes.size() != length + 1) continue;
    ASSERT_EQ(static_cast<size_t>(bytes[0]), length);
    Heard heard;
    Decoder decoder;
    for (const char byte : bytes) decoder.Feed({&byte, 1}, HeaderInto(heard), FrameInto(heard));
    EXPECT_FALSE(decoder.failed()) << decoder.error();
    ASSERT_EQ(heard.headers.size(), 1u) << length;
    EXPECT_EQ(heard.headers[0].node, header.node);
  }
}

struct Damage {
  const char* name;
  std::string tail;
  const char* reason;
};

TEST(Recording, StopsAtTheFirstBadFrameAndSaysWhere) {
  std::string good;
  AppendHeader(ExampleHeader(), good);
  Observation tick;
  tick.kind = Tick{};
  ASSERT_TRUE(AppendObservation(tick, good));
  std::string after;
  ASSERT_TRUE(AppendObservation(tick, after));
  const Damage damages[] = {
      {"zeros", std::string(16, '\0'), "no bytes"},
      {"too large", "\x81\x80\x40", "longer"},
      {"endless varint", std::string(11, '\xFF'), "longer"},
      {"overlong varint", std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10), "longer"},
      {"not a message", "\x03\xFF\xFF\xFF", "not an observation"},
      {"a string that is not UTF-8", "\x03\x22\x01\xFF", "not an observation"},
      {"a length past the frame", "\x03\x22\x7F\x61", "not an observation"},
  };
  for (const Damage& damage : damages) {
    for (const bool bytewise : {false, true}) {
      Heard heard;
      Decoder decoder;
      const std::string bytes = good + damage.tail + after;
      for (size_t at = 0; at < bytes.size(); at += bytewise ? 1 : bytes.size()) {
        decoder.Feed(std::string_view(bytes).substr(at, bytewise ? 1 : bytes.size()),
                     HeaderInto(heard), FrameInto(heard));
      }
      EXPECT_TRUE(decoder.failed()) << damage.name;
      EXPECT_EQ(heard.frames.size(), 1u) << damage.name;
      EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(good.size())) << damage.name;
      EXPECT_THAT(decoder.error(), HasSubstr(damage.reason)) << damage.name;
      EXPECT_THAT(decoder.error(), HasSubstr("byte " + std::to_string(good.size()))) << damage.name;
      EXPECT_EQ(decoder.pending(), 0u);
    }
  }
}

TEST(Recording, WhatIsNotARecordingIsSaidToBeNone) {
  for (const std::string text : {"Traceback (most recent call last):\n  File x", "\x05\x01\x02",
                                 "hello world, hello", "\n\n\xED[!", "\xEF\xBB\xBF text"}) {
    Heard heard;
    Decoder decoder;
    decoder.Feed(text + std::string(200, 'x'), HeaderInto(heard), FrameInto(heard));
    EXPECT_TRUE(decoder.failed());
    EXPECT_LE(decoder.good_bytes(), 4);  // white space may be passed over
    EXPECT_TRUE(heard.headers.empty());
    EXPECT_TRUE(heard.frames.empty());
  }
}

TEST(Recording, ALaterVersionIsRefusedByName) {
  std::string bytes;
  AppendHeader({7, "9.0", "", "", 1}, bytes);
  Heard heard;
  Decoder decoder;
  decoder.Feed(bytes, HeaderInto(heard), FrameInto(heard));
  EXPECT_TRUE(decoder.failed());
  EXPECT_THAT(decoder.error(), HasSubstr("version 7"));
}

TEST(Recording, AFrameOverTheCapIsRefusedAtWritingAndTheCapItselfIsNot) {
  Observation observation;
  observation.kind = EngineState{"b", std::string(kFrameCap, 'x')};
  std::string bytes = "before";
  EXPECT_FALSE(AppendObservation(observation, bytes));
  EXPECT_EQ(bytes, "before");
  LogLine line;
  const std::string text(kFrameCap, 'x');
  line.text = text;
  observation.kind = line;
  EXPECT_FALSE(AppendObservation(observation, bytes));

  bytes.clear();
  AppendHeader(ExampleHeader(), bytes);
  const size_t header = bytes.size();
  constexpr size_t kOverhead = 3 + 4 + 1 + 3;  // blob's tag and length, state's length, tags
  for (size_t spare = 0; spare < 2 * kOverhead; ++spare) {
    observation.kind = EngineState{"", std::string(kFrameCap - spare, 'x')};
    if (AppendObservation(observation, bytes)) break;
  }
  ASSERT_EQ(bytes.size(), header + 3 + kFrameCap);
  Heard heard;
  Decoder decoder;
  for (size_t at = 0; at < bytes.size(); at += 4096) {
    decoder.Feed(std::string_view(bytes).substr(at, 4096), HeaderInto(heard), FrameInto(heard));
  }
  EXPECT_FALSE(decoder.failed()) << decoder.error();
  EXPECT_EQ(heard.frames.size(), 1u);
}

TEST(Recording, SignalsAndKindsOfALaterBuildAreSkippedAndCounted) {
  std::string bytes;
  AppendHeader(ExampleHeader(), bytes);
  proto::Observation message;
  message.set_t_ns(5);
  auto* samples = message.mutable_samples();
  for (const uint32_t id : {1u, 60000u, 4000000u, 4u}) samples->add_signal(id);
  for (const float value : {1.0f, 2.0f, 3.0f}) samples->add_value(value);  // one short
  std::string payload = message.SerializeAsString();
  bytes.push_back(static_cast<char>(payload.size()));
  bytes += payload;
  bytes +=
      std::string("\x05\xFA\x07\x02\x08\x01", 6);  // field 127, a message: a kind not invented yet
  Heard heard;
  std::vector<size_t> kept;
  Decoder decoder;
  decoder.Feed(bytes, HeaderInto(heard), [&](const Observation& observation) {
    kept.push_back(std::get<SampleBatch>(observation.kind).samples.size());
  });
  EXPECT_FALSE(decoder.failed()) << decoder.error();
  EXPECT_EQ(kept, std::vector<size_t>{1});
  EXPECT_EQ(decoder.unknown_signals(), 3);
  EXPECT_EQ(decoder.unknown_kinds(), 1);
  EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(bytes.size()));
}

TEST(Recording, ACounterKeepsEveryDigit) {
  constexpr double kBytes = 9'007'199'254'740'991.0;  // 2^53 - 1; as a float one of 2^53
  Observation observation;
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kHost;
  batch.samples = {{SignalId::kReadBytes, kBytes}, {SignalId::kCpuSeconds, 0.1}};
  observation.kind = batch;
  std::string bytes;
  AppendHeader(ExampleHeader(), bytes);
  ASSERT_TRUE(AppendObservation(observation, bytes));
  std::vector<double> values;
  Decoder decoder;
  decoder.Feed(
      bytes, [](const Header&) {},
      [&](const Observation& read) {
        for (const Sample& sample : std::get<SampleBatch>(read.kind).samples)
          values.push_back(sample.value);
      });
  EXPECT_EQ(values, (std::vector<double>{kBytes, 0.1}));
}

TEST(Recording, SamplesOfAnEarlierBuildAreInSinglePrecision) {
  std::string bytes;
  AppendHeader(ExampleHeader(), bytes);
  proto::Observation message;
  message.set_t_ns(5);
  message.mutable_samples()->set_host(true);
  message.mutable_samples()->add_signal(1);
  message.mutable_samples()->add_value(0.1f);
  const std::string payload = message.SerializeAsString();
  bytes.push_back(static_cast<char>(payload.size()));
  bytes += payload;
  std::vector<double> values;
  Decoder decoder;
  decoder.Feed(
      bytes, [](const Header&) {},
      [&](const Observation& read) {
        for (const Sample& sample : std::get<SampleBatch>(read.kind).samples)
          values.push_back(sample.value);
      });
  EXPECT_EQ(values, std::vector<double>{static_cast<double>(0.1f)});
}

TEST(Recording, EnumerationsOfALaterBuildReadAsUnspecified) {
  std::string bytes;
  AppendHeader(ExampleHeader(), bytes);
  proto::Observation message;
  message.mutable_run()->set_what(static_cast<proto::RunMark::What>(77));
  const std::string payload = message.SerializeAsString();
  bytes.push_back(static_cast<char>(payload.size()));
  bytes += payload;
  RunMark::What what = RunMark::What::kEnd;
  Decoder decoder;
  decoder.Feed(
      bytes, [](const Header&) {},
      [&](const Observation& observation) { what = std::get<RunMark>(observation.kind).what; });
  EXPECT_EQ(what, RunMark::What::kUnspecified);
}

}  // namespace
}  // namespace rankscope::recording
