// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Observations as frames, and what a decoder said as frames again.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "detectors/proto/recording.pb.h"
#include "detectors/recording/recording.h"
#include "tests/support/observations.h"

namespace rankscope::recording {

// What a decoder said, as frames again: equal frames are equal observations, and no borrowed view
// outlives its call.
struct Heard {
  std::vector<Header> headers;
  std::vector<std::string> frames;
};

inline Decoder::OnHeader HeaderInto(Heard& heard) {
  return [&heard](const Header& header) { heard.headers.push_back(header); };
}

inline Decoder::OnObservation FrameInto(Heard& heard) {
  return [&heard](const Observation& observation) {
    std::string frame;
    EXPECT_TRUE(AppendObservation(observation, frame));
    heard.frames.push_back(frame);
  };
}

inline std::string Frame(const Observation& observation) {
  std::string frame;
  EXPECT_TRUE(AppendObservation(observation, frame));
  return frame;
}

// The payload of one frame.
inline proto::Observation Message(std::string_view frame) {
  size_t at = 0;
  while (static_cast<uint8_t>(frame[at]) >= 0x80) ++at;
  proto::Observation message;
  EXPECT_TRUE(
      message.ParseFromArray(frame.data() + at + 1, static_cast<int>(frame.size() - at - 1)));
  return message;
}

}  // namespace rankscope::recording
