// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/recording/recording.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "detectors/proto/recording.pb.h"
#include "detectors/recording/recording_model.h"

namespace rankscope::recording {

namespace {

// A JSON line may be longer than the frame it means: base64 and \u escapes.
constexpr size_t kJsonLineCap = 4 * kFrameCap;

Header ToHeader(const proto::Header& from) {
  return {from.version(), from.tool_version(), from.node(), from.boot_id(),
          from.signal_table_version()};
}

bool ParseJson(std::string_view line, google::protobuf::Message& message, std::string& error) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      google::protobuf::util::JsonStringToMessage({line.data(), line.size()}, &message, options);
  if (status.ok()) return true;
  error = status.message().ToString();
  error.resize(std::min(error.find('\n'),
                        error.size()));  // below it the library draws the place in the line
  return false;
}

}  // namespace

void Decoder::Feed(std::string_view bytes, const OnHeader& header,
                   const OnObservation& observation) {
  if (failed_) return;
  if (pending_.empty()) {
    const size_t used = Consume(bytes, header, observation);
    if (!failed_) pending_.assign(bytes.substr(used));
  } else {
    pending_.append(bytes);
    const size_t used = Consume(pending_, header, observation);
    pending_.erase(0, used);
  }
  if (failed_) pending_.clear();
}

void Decoder::Finish(const OnHeader& header, const OnObservation& observation) {
  if (failed_ || format_ != Format::kJson || pending_.empty()) return;
  const std::string line = std::exchange(pending_, {});
  if (TakeJsonLine(line, header, observation)) good_bytes_ += static_cast<int64_t>(line.size());
}

size_t Decoder::Consume(std::string_view bytes, const OnHeader& header,
                        const OnObservation& observation) {
  const size_t skipped = format_ == Format::kUnknown ? Sniff(bytes) : 0;
  good_bytes_ += static_cast<int64_t>(skipped);
  bytes.remove_prefix(skipped);
  if (format_ == Format::kUnknown && good_bytes_ > 0 && !bytes.empty()) {
    Fail("neither a header frame nor JSON: not a recording");
  }
  switch (format_) {
    case Format::kUnknown:
      return skipped;
    case Format::kFrames:
      return skipped + ConsumeFrames(bytes, header, observation);
    case Format::kJson:
      return skipped + ConsumeJson(bytes, header, observation);
  }
  return skipped;
}

// Decides the format as soon as the bytes allow it and returns how many bytes stand before the
// first JSON line. A header frame of 123 bytes begins with '{' too, but its second byte is the tag
// of `version`, which no JSON text holds there.
size_t Decoder::Sniff(std::string_view bytes) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  constexpr char kVersionTag = '\x08';
  if (good_bytes_ == 0) {
    if (bytes.size() < 2) return 0;
    if (bytes[1] == kVersionTag) {
      format_ = Format::kFrames;
      return 0;
    }
    if (bytes.size() < kMark.size() && kMark.substr(0, bytes.size()) == bytes) return 0;
  }
  size_t at = good_bytes_ == 0 && bytes.substr(0, kMark.size()) == kMark ? kMark.size() : 0;
  while (at < bytes.size() &&
         (bytes[at] == ' ' || bytes[at] == '\t' || bytes[at] == '\r' || bytes[at] == '\n'))
    ++at;
  if (at == bytes.size()) return at;
  if (bytes[at] == '{') {
    format_ = Format::kJson;
  } else if (good_bytes_ == 0 && at == 0) {
    format_ = Format::kFrames;
  }
  return at;
}

size_t Decoder::ConsumeFrames(std::string_view bytes, const OnHeader& header,
                              const OnObservation& observation) {
  constexpr size_t kLongestLength = 3;  // bytes of a varint up to 2 MiB, past the cap
  // The library prints what it dislikes; a damaged recording is our answer to give, and not its.
  const google::protobuf::LogSilencer silence;
  proto::Observation message;
  size_t used = 0;
  for (;;) {
    const std::string_view rest = bytes.substr(used);
    uint64_t length = 0;
    size_t head = 0;
    bool whole = false;
    while (head < rest.size() && head < kLongestLength && !whole) {
      const auto byte = static_cast<uint8_t>(rest[head]);
      length |= static_cast<uint64_t>(byte & 0x7F) << (7 * head);
      whole = byte < 0x80;
      ++head;
    }
    if (length > kFrameCap || (!whole && head == kLongestLength)) {
      Fail("a frame is longer than " + std::to_string(kFrameCap) + " bytes");
      return used;
    }
    if (!whole) return used;
    if (length == 0) {  // what a lost block of a file reads as
      Fail("a frame of no bytes");
      return used;
    }
    if (rest.size() - head < length) return used;
    const int size = static_cast<int>(length);
    if (!header_seen_) {
      proto::Header first;
      if (!first.ParseFromArray(rest.data() + head, size) || first.version() == 0) {
        Fail("does not begin with a header frame: not a recording");
        return used;
      }
      if (first.version() != kVersion) {
        Fail("version " + std::to_string(first.version()) + " of the format; this build reads " +
             std::to_string(kVersion));
        return used;
      }
      header_seen_ = true;
      header(ToHeader(first));
    } else {
      if (!message.ParseFromArray(rest.data() + head, size)) {
        Fail("a frame is not an observation");
        return used;
      }
      Observation decoded;
      if (ToModel(message, decoded, unknown_signals_)) {
        observation(decoded);
      } else {
        ++unknown_kinds_;
      }
    }
    used += head + length;
    good_bytes_ += static_cast<int64_t>(head + length);
  }
}

size_t Decoder::ConsumeJson(std::string_view bytes, const OnHeader& header,
                            const OnObservation& observation) {
  size_t used = 0;
  for (;;) {
    const size_t from = used + std::exchange(searched_, 0);
    const size_t end = bytes.find('\n', from);
    if (end == std::string_view::npos) {
      searched_ = bytes.size() - used;
      if (searched_ > kJsonLineCap)
        Fail("a line is longer than " + std::to_string(kJsonLineCap) + " bytes");
      return used;
    }
    if (!TakeJsonLine(bytes.substr(used, end - used), header, observation)) return used;
    good_bytes_ += static_cast<int64_t>(end + 1 - used);
    used = end + 1;
  }
}

bool Decoder::TakeJsonLine(std::string_view line, const OnHeader& header,
                           const OnObservation& observation) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return true;
  if (line.size() > kJsonLineCap) {
    Fail("a line is longer than " + std::to_string(kJsonLineCap) + " bytes");
    return false;
  }
  std::string reason;
  if (!header_seen_) {
    header_seen_ = true;
    proto::Header first;
    if (!ParseJson(line, first, reason)) {
      Fail("a line is not JSON of a header: " + reason);
      return false;
    }
    if (first.version() > kVersion) {
      Fail("version " + std::to_string(first.version()) + " of the format; this build reads " +
           std::to_string(kVersion));
      return false;
    }
    // An observation has no `version`; its other fields are unknown to a header.
    const bool is_header = first.version() != 0;
    header(is_header ? ToHeader(first) : Header{});
    if (is_header) return true;
  }
  proto::Observation message;
  if (!ParseJson(line, message, reason)) {
    Fail("a line is not JSON of an observation: " + reason);
    return false;
  }
  Observation decoded;
  if (ToModel(message, decoded, unknown_signals_)) {
    observation(decoded);
  } else {
    ++unknown_kinds_;
  }
  return true;
}

void Decoder::Fail(std::string reason) {
  failed_ = true;
  error_ = "byte " + std::to_string(good_bytes_) + ": " + std::move(reason);
}

}  // namespace rankscope::recording
