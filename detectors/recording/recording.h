// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The recording codec: observation stream <-> delimited protobuf, and JSON Lines for reading. Pure:
// bytes in, bytes out; files belong to exporter/replay. Any thread, one object per stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "detectors/model/observation.h"
#include "detectors/model/result.h"

namespace rankscope::recording {

inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kFrameCap =
    1 << 20;  // a larger frame is damage: the largest line is 64 KiB, EngineState is chunked by job

struct Header {
  uint32_t version = kVersion;
  std::string tool_version;
  std::string node;
  std::string boot_id;
  uint32_t signal_table_version = kSignalTableVersion;
};

// Appends one varint-delimited frame to `out`. A log line's text is kept byte by byte; in every
// other string bytes that are not UTF-8 become U+FFFD.
void AppendHeader(const Header& header, std::string& out);

// False, with nothing appended, where the frame would pass kFrameCap: nobody could read on behind
// it.
bool AppendObservation(const Observation& observation, std::string& out);

// Feeds recorded bytes in pieces of any size. Recognises JSON Lines by a first byte of '{' (white
// space and a byte order mark may stand before it); there the header line may be absent, field
// names may be snake_case or lowerCamelCase, and unknown fields are ignored. Stops for good at the
// first frame that cannot be read.
class Decoder {
 public:
  using OnHeader = std::function<void(const Header&)>;
  using OnObservation = std::function<void(const Observation&)>;

  // Calls `header` once, then `observation` per frame; views inside are valid during the call.
  void Feed(std::string_view bytes, const OnHeader& header, const OnObservation& observation);

  // No more bytes will come: a last JSON line needs no newline. What is still pending() after this
  // was cut off.
  void Finish(const OnHeader& header, const OnObservation& observation);

  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }
  // Bytes consumed as whole frames: where a damaged recording ends, and where to go on after a
  // restart.
  int64_t good_bytes() const { return good_bytes_; }
  // Bytes of an unfinished frame still held.
  size_t pending() const { return pending_.size(); }
  // Samples left out because this build does not know their signal, and frames because it does not
  // know their kind.
  int64_t unknown_signals() const { return unknown_signals_; }
  int64_t unknown_kinds() const { return unknown_kinds_; }

 private:
  enum class Format : uint8_t { kUnknown, kFrames, kJson };

  // Each returns how many bytes of `bytes` it has used.
  size_t Consume(std::string_view bytes, const OnHeader& header, const OnObservation& observation);
  size_t ConsumeFrames(std::string_view bytes, const OnHeader& header,
                       const OnObservation& observation);
  size_t ConsumeJson(std::string_view bytes, const OnHeader& header,
                     const OnObservation& observation);
  size_t Sniff(std::string_view bytes);
  bool TakeJsonLine(std::string_view line, const OnHeader& header,
                    const OnObservation& observation);
  void Fail(std::string reason);

  std::string pending_;
  size_t searched_ = 0;  // bytes of pending_ known to hold no end of line
  int64_t good_bytes_ = 0;
  int64_t unknown_signals_ = 0;
  int64_t unknown_kinds_ = 0;
  Format format_ = Format::kUnknown;
  bool header_seen_ = false;
  bool failed_ = false;
  std::string error_;
};

}  // namespace rankscope::recording
