// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Recordings as JSON Lines, as a person writes them.
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "tests/unit/recording/frames.h"

namespace rankscope::recording {
namespace {

std::string AsJsonLines(bool proto_names) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = proto_names;
  std::string out = proto_names ? R"({"version":1,"tool_version":"0.1.0","node":"n1"})"
                                : R"({"version":1,"toolVersion":"0.1.0","node":"n1"})";
  out += '\n';
  for (const Observation& observation : ::rankscope::testing::OneOfEachKind()) {
    std::string json;
    EXPECT_TRUE(
        google::protobuf::util::MessageToJsonString(Message(Frame(observation)), &json, options)
            .ok());
    out += json + "\n";
  }
  return out;
}

TEST(RecordingJson, BothSpellingsOfNamesReadAsTheSameObservations) {
  const auto all = ::rankscope::testing::OneOfEachKind();
  for (const bool proto_names : {false, true}) {
    for (const size_t piece : {1u, 100000u}) {
      const std::string bytes = AsJsonLines(proto_names);
      Heard heard;
      Decoder decoder;
      for (size_t at = 0; at < bytes.size(); at += piece) {
        decoder.Feed(std::string_view(bytes).substr(at, piece), HeaderInto(heard),
                     FrameInto(heard));
      }
      EXPECT_FALSE(decoder.failed()) << decoder.error();
      ASSERT_EQ(heard.headers.size(), 1u);
      EXPECT_EQ(heard.headers[0].tool_version, "0.1.0");
      ASSERT_EQ(heard.frames.size(), all.size());
      for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(heard.frames[i], Frame(all[i])) << i;
      EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(bytes.size()));
    }
  }
}

TEST(RecordingJson, TakesWhatAPersonWrites) {
  const std::string bytes =
      "\xEF\xBB\xBF \r\n\n"
      R"({"t_ns": 5, "run": {"what": "BEGIN", "job_id": "j"}, "comment": {"by": ["hand", 1]}})"
      "\r\n\n"
      R"({"t_ns": "6", "line": {"text": "a\tb", "end": "LF", "nonsense": null}})"
      "\n"
      R"({"t_ns": 7, "samples": {"host": true, "signal": [1], "value": ["NaN"]}})";
  for (const size_t piece : {1u, 2u, 100000u}) {
    Heard heard;
    Decoder decoder;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      decoder.Feed(std::string_view(bytes).substr(at, piece), HeaderInto(heard), FrameInto(heard));
    }
    EXPECT_GT(decoder.pending(), 0u);
    decoder.Finish(HeaderInto(heard), FrameInto(heard));
    EXPECT_FALSE(decoder.failed()) << decoder.error();
    EXPECT_EQ(heard.headers.size(), 1u);
    ASSERT_EQ(heard.frames.size(), 3u);
    EXPECT_EQ(Message(heard.frames[0]).run().what(), proto::RunMark::BEGIN);
    EXPECT_EQ(Message(heard.frames[1]).t_ns(), 6);
    EXPECT_EQ(Message(heard.frames[1]).line().text(), "a\tb");
    EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(bytes.size()));
    EXPECT_EQ(decoder.pending(), 0u);
  }
}

TEST(RecordingJson, StopsAtTheFirstBadLineAndSaysWhere) {
  const std::string good = "{\"t_ns\":1,\"tick\":{}}\n{\"t_ns\":2,\"tick\":{}}\n";
  for (const std::string bad : {"{\"t_ns\":3,", "{\"t_ns\":\"x\"}", "not json", "[1]",
                                "{\"t_ns\":3,\"tick\":{},\"epoch\":{}}"}) {
    Heard heard;
    Decoder decoder;
    decoder.Feed(good + bad + "\n" + good, HeaderInto(heard), FrameInto(heard));
    EXPECT_TRUE(decoder.failed()) << bad;
    EXPECT_EQ(heard.frames.size(), 2u) << bad;
    EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(good.size())) << bad;
  }
  Heard heard;
  Decoder decoder;
  decoder.Feed(good + "{\"t_ns\":3,\"ti", HeaderInto(heard), FrameInto(heard));
  decoder.Finish(HeaderInto(heard), FrameInto(heard));
  EXPECT_TRUE(decoder.failed());
  EXPECT_EQ(decoder.good_bytes(), static_cast<int64_t>(good.size()));
}

TEST(RecordingJson, NestingAndEndlessLinesEndInAnError) {
  Heard heard;
  Decoder deep;
  deep.Feed("{\"a\":" + std::string(100000, '[') + "\n", HeaderInto(heard), FrameInto(heard));
  EXPECT_TRUE(deep.failed());
  Decoder endless;
  const std::string piece(1 << 20, 'x');
  endless.Feed("{\"a\":\"", HeaderInto(heard), FrameInto(heard));
  for (int i = 0; i < 8 && !endless.failed(); ++i)
    endless.Feed(piece, HeaderInto(heard), FrameInto(heard));
  EXPECT_TRUE(endless.failed());
  EXPECT_EQ(endless.pending(), 0u);
}

}  // namespace
}  // namespace rankscope::recording
