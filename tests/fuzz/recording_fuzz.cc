// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The recording decoder on any bytes: the answer does not depend on how they were cut into pieces,
// and what was read once is read the same when it is written again. Seeds are made here: a custom
// mutator starts from recordings of every kind.
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "detectors/proto/recording.pb.h"
#include "detectors/recording/recording.h"
#include "tests/support/observations.h"

namespace {

using rankscope::Observation;
using rankscope::recording::AppendObservation;
using rankscope::recording::Decoder;
using rankscope::recording::Header;

struct Heard {
  std::string frames;
  int64_t good_bytes = 0;
  bool failed = false;
  int headers = 0;

  bool operator==(const Heard&) const = default;
};

Heard Decode(std::string_view bytes, size_t piece) {
  Heard heard;
  Decoder decoder;
  const auto header = [&](const Header&) { ++heard.headers; };
  const auto observation = [&](const Observation& o) {
    // Only the zero bytes that the model adds for absent fields can make a frame larger than it
    // came.
    if (!AppendObservation(o, heard.frames)) heard.frames += "too large";
  };
  for (size_t at = 0; at < bytes.size(); at += piece)
    decoder.Feed(bytes.substr(at, piece), header, observation);
  decoder.Finish(header, observation);
  heard.good_bytes = decoder.good_bytes();
  heard.failed = decoder.failed();
  if (heard.good_bytes > static_cast<int64_t>(bytes.size()) || heard.headers > 1) std::abort();
  if (decoder.pending() > bytes.size()) std::abort();
  return heard;
}

std::string JsonOf(const Observation& observation) {
  std::string frame;
  if (!AppendObservation(observation, frame)) std::abort();
  const size_t head = static_cast<uint8_t>(frame[0]) < 0x80 ? 1 : 2;
  rankscope::proto::Observation message;
  std::string json;
  if (!message.ParseFromArray(frame.data() + head, static_cast<int>(frame.size() - head)) ||
      !google::protobuf::util::MessageToJsonString(message, &json).ok()) {
    std::abort();
  }
  return json + "\n";
}

std::string Seed(unsigned int number) {
  const auto all = rankscope::testing::OneOfEachKind();
  std::string bytes;
  const bool json = number % 2 == 1;
  if (json) {
    bytes = "{\"version\":1}\n";
  } else {
    rankscope::recording::AppendHeader({}, bytes);
  }
  const size_t first = (number / 2) % all.size();
  for (size_t i = 0; i < 3; ++i) {
    const Observation& observation = all[(first + i * 5) % all.size()];
    if (json) {
      bytes += JsonOf(observation);
    } else if (!AppendObservation(observation, bytes)) {
      std::abort();
    }
  }
  return bytes;
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 16 == 0) {
    const std::string bytes = Seed(seed / 16);
    size = std::min(bytes.size(), max_size);
    std::memcpy(data, bytes.data(), size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Heard whole = Decode(bytes, std::max<size_t>(size, 1));
  if (size <= 512 && !(Decode(bytes, 1) == whole)) std::abort();
  if (!(Decode(bytes, 61) == whole)) std::abort();

  std::string again;
  rankscope::recording::AppendHeader({}, again);
  again += whole.frames;
  if (whole.frames.find("too large") == std::string::npos &&
      Decode(again, again.size()).frames != whole.frames) {
    std::abort();
  }
  return 0;
}
