// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a recording begins with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/daemon/job_recordings.h"
#include "exporter/daemon/sources.h"
#include "exporter/replay/reading.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

Observation At(int64_t seconds, auto kind) {
  Observation observation;
  observation.t = Timestamp{} + Seconds(static_cast<double>(seconds));
  observation.seq = seconds;
  observation.node = "n1";
  observation.kind = std::move(kind);
  return observation;
}

Observation State(int64_t seconds, const std::string& name, Availability availability) {
  SourceState state;
  state.source = 5;
  state.name = name;
  state.state = availability;
  return At(seconds, state);
}

Observation Begin(int64_t seconds, const std::string& job_id, int32_t pid) {
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kBegin;
  mark.root = {pid, 1};
  return At(seconds, mark);
}

TEST(RecordingPreamble, AJobBeginsWithTheStatesThatTheSourcesHaveThen) {
  const TemporaryDirectory directory;
  EventLoop loop;
  DiskThread frames{loop, {64, 1 << 20}};
  DiskThread slow{loop};
  Logger log{"error", "logfmt"};
  JobRecordings::Options options;
  options.directory = directory.path() + "/state";
  options.job_bytes = 8 << 20;
  options.total_bytes = 1 << 30;
  JobRecordings recordings(options, log, frames, slow);
  ASSERT_TRUE(recordings.Open().ok());
  recordings.SetPreamble(
      {State(0, "nvml", Availability::kNotApplicable), State(0, "kmsg", Availability::kUp)});
  recordings.Accept(Begin(1, "early", 10));
  recordings.Accept(State(2, "nvml", Availability::kUp));
  recordings.Accept(Begin(3, "late", 20));
  recordings.Flush();
  ASSERT_TRUE(frames.Drain(Seconds(60)));

  const auto states_of = [&](const std::string& job_id) {
    std::vector<std::pair<std::string, Availability>> states;
    replay::ReadCallbacks callbacks;
    callbacks.observation = [&](const Observation& observation) {
      if (const auto* state = std::get_if<SourceState>(&observation.kind))
        states.emplace_back(state->name, state->state);
    };
    const std::string folder = directory.path() + "/state/jobs/" + job_id;
    EXPECT_TRUE(replay::ReadRecording(folder, callbacks).readable);
    return states;
  };
  using testing::ElementsAre;
  using testing::Pair;
  EXPECT_THAT(states_of("early"),
              ElementsAre(Pair("nvml", Availability::kNotApplicable),
                          Pair("kmsg", Availability::kUp), Pair("nvml", Availability::kUp)));
  EXPECT_THAT(states_of("late"),
              ElementsAre(Pair("nvml", Availability::kUp), Pair("kmsg", Availability::kUp)));
}

}  // namespace
}  // namespace rankscope::exporter
