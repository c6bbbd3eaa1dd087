// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/wrapper_words.h"

#include <gtest/gtest.h>

#include <climits>
#include <string>
#include <variant>

#include "detectors/logs/text/assembler.h"
#include "exporter/run/protocol.h"

namespace rankscope::run {
namespace {

WrapperWords Words() {
  WrapperWords words;
  words.job_id = "run-1000-0a1b2c3d";
  words.claimed_root = {7, 70};
  words.peer.uid = 1000;
  words.peer.process = {100, 1000};
  words.root.key = {101, 1001};
  words.root.cgroup = "/user.slice";
  return words;
}

template <typename T>
Observation Of(T kind) {
  Observation observation;
  observation.kind = std::move(kind);
  return observation;
}

TEST(WrapperWords, ItsMarksAreOfItsOwnChildAndItsOwnUser) {
  RunMark mark;
  mark.job_id = "run-1000-0a1b2c3d";
  mark.what = RunMark::What::kBegin;
  mark.root = {1, 1};
  mark.uid = 0;
  mark.from_folder = true;
  Sifted sifted = Words().Sift(Of(mark));
  ASSERT_TRUE(sifted.heard);
  const auto& own = std::get<RunMark>(sifted.heard->Bound().kind);
  EXPECT_EQ(own.root, (ProcessKey{101, 1001}));
  EXPECT_EQ(own.uid, 1000u);
  EXPECT_FALSE(own.from_folder);
  for (const RunMark::What what : {RunMark::What::kLost, RunMark::What::kDisowned}) {
    mark.what = what;
    EXPECT_TRUE(Words().Sift(Of(mark)).foreign);
  }
  mark.what = RunMark::What::kEnd;
  mark.job_id = "8841";
  EXPECT_TRUE(Words().Sift(Of(mark)).foreign) << "another job";
}

TEST(WrapperWords, WhatIsNotItsToSayIsCounted) {
  for (const Observation& other :
       {Of(KernelEvent{}), Of(SchedulerFact{}), Of(SchedulerRecord{}), Of(ProcessExit{}),
        Of(SignalSent{}), Of(SampleBatch{}), Of(Event{})}) {
    const Sifted sifted = Words().Sift(other);
    EXPECT_FALSE(sifted.heard);
    EXPECT_TRUE(sifted.foreign);
  }
  for (const Observation& itself : {Of(Tick{}), Of(Epoch{}), Of(SourceState{})}) {
    const Sifted sifted = Words().Sift(itself);
    EXPECT_FALSE(sifted.heard || sifted.foreign) << "it records these for its own judgement";
  }
}

TEST(WrapperWords, NumbersOfItsLinesAreBounded) {
  const std::string text(2 * logs::kLineCap, 'x');
  LogLine line;
  line.job_id = "run-1000-0a1b2c3d";
  line.stream = 1;
  line.text = text;
  line.writer = {1, 1};
  line.offset = INT64_MAX;
  line.lost_before = INT64_MAX;
  line.cut_bytes = INT_MIN;
  Sifted sifted = Words().Sift(Of(line));
  ASSERT_TRUE(sifted.heard);
  const auto& own = std::get<LogLine>(sifted.heard->Bound().kind);
  EXPECT_EQ(own.text.size(), logs::kLineCap);
  EXPECT_EQ(own.writer, ProcessKey{});
  EXPECT_LE(own.offset, INT64_MAX / 4);
  EXPECT_LE(own.lost_before, INT64_MAX / 4);
  EXPECT_EQ(own.cut_bytes, 0);
  line.offset = -1;
  EXPECT_EQ(std::get<LogLine>(Words().Sift(Of(line)).heard->Bound().kind).offset, 0);
  line.stream = 3;
  EXPECT_TRUE(Words().Sift(Of(line)).foreign) << "that stream is the daemon's own";
}

TEST(Protocol, OnlyWholeMessagesAreTaken) {
  HelloMessage hello;
  hello.streams = 3;
  const std::string id = "8841";
  id.copy(hello.job_id.data(), id.size());
  EXPECT_TRUE(ReadHello(BytesOf(hello), 5));
  EXPECT_FALSE(ReadHello(BytesOf(hello), 4)) << "a descriptor is missing";
  EXPECT_FALSE(ReadHello(BytesOf(hello).subspan(1), 5));
  hello.streams = 4;
  EXPECT_FALSE(ReadHello(BytesOf(hello), 3));
  hello.streams = 0;
  hello.job_id.fill('a');
  const auto longest = ReadHello(BytesOf(hello), 3);
  ASSERT_TRUE(longest);
  EXPECT_EQ(std::string(longest->job_id.data()).size(), kJobIdCap - 1);
  EXPECT_EQ(ReadStream(BytesOf(StreamMessage{kReleaseStream, 1})), 1u);
  EXPECT_FALSE(ReadStream(BytesOf(StreamMessage{kReleaseStream, 2})));
  VerdictMessage verdict;
  verdict.json_bytes = kVerdictCap;
  EXPECT_TRUE(ReadVerdict(BytesOf(verdict), 1));
  EXPECT_FALSE(ReadVerdict(BytesOf(verdict), 0));
  verdict.text_bytes = UINT64_MAX;
  EXPECT_FALSE(ReadVerdict(BytesOf(verdict), 1));
}

}  // namespace
}  // namespace rankscope::run
