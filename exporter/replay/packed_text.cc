// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/packed_text.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string>

namespace rankscope::replay {
namespace {

constexpr std::string_view kGzip = "\x1f\x8b\x08";
constexpr int kGzipWindow = 15 + 16;  // zlib's largest, with gzip's head

}  // namespace

std::string_view PackerOf(std::string_view begin) {
  struct Packer {
    std::string_view magic;
    std::string_view program;
  };
  static constexpr Packer kPackers[] = {{kGzip, "gzip"},
                                        {std::string_view("\x28\xb5\x2f\xfd"), "zstd"},
                                        {std::string_view("\xfd\x37zXZ\0", 6), "xz"},
                                        {std::string_view("BZh91AY&SY"), "bzip2"}};
  for (const Packer& packer : kPackers) {
    if (begin.starts_with(packer.magic)) return packer.program;
  }
  return {};
}

struct PackedText::Stream {
  z_stream z = {};
  Stream() { inflateInit2(&z, kGzipWindow); }
  ~Stream() { inflateEnd(&z); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

PackedText::PackedText(int64_t most_text)
    : stream_(std::make_unique<Stream>()), most_text_(most_text) {}

PackedText::~PackedText() = default;

void PackedText::Fail(std::string_view what) {
  fault_ = std::string(what) + " after " + std::to_string(text_bytes_) + " bytes of text";
  ended_ = true;
}

// A file may hold several parts one behind the other, and zeros behind the last.
bool PackedText::BeginNext(std::string_view& packed) {
  while (!packed.empty() && head_.size() < kGzip.size()) {
    if (text_bytes_ > 0 && head_.empty() && packed.front() == '\0') {
      packed.remove_prefix(1);
      continue;
    }
    head_.push_back(packed.front());
    packed.remove_prefix(1);
  }
  if (head_.size() < kGzip.size()) return false;
  if (head_ != kGzip) {
    Fail("it holds something else");
    return false;
  }
  between_ = false;
  inflateReset(&stream_->z);
  return true;
}

size_t PackedText::Read(std::string_view& packed, char* text, size_t size) {
  z_stream& z = stream_->z;
  size_t written = 0;
  while (written < size && !ended_) {
    if (between_ && !BeginNext(packed)) break;
    // Without further bytes, too: zlib may hold text of those that it has taken.
    const std::string_view from = head_.empty() ? packed : std::string_view(head_);
    const size_t bytes =
        std::min(from.size(), static_cast<size_t>(std::numeric_limits<uInt>::max()));
    // zlib does not write through next_in.
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
    z.avail_in = static_cast<uInt>(bytes);
    z.next_out = reinterpret_cast<Bytef*>(text + written);
    z.avail_out = static_cast<uInt>(
        std::min(size - written, static_cast<size_t>(std::numeric_limits<uInt>::max())));
    const uInt room = z.avail_out;
    const int result = inflate(&z, Z_NO_FLUSH);
    const size_t taken = bytes - z.avail_in;
    packed_bytes_ += static_cast<int64_t>(taken);
    if (head_.empty()) {
      packed.remove_prefix(taken);
    } else {
      head_.erase(0, taken);
    }
    written += room - z.avail_out;
    text_bytes_ += room - z.avail_out;
    if (result == Z_STREAM_END) {
      between_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      Fail("it is damaged");
    } else if (taken == 0 && room == z.avail_out) {
      if (bytes == 0) break;
      Fail("it is damaged");  // nothing moves, though there are bytes and room
    }
    if (text_bytes_ > most_text_ && text_bytes_ / kMostRatio > packed_bytes_)
      Fail("it was made to be endless, and is not read on");
  }
  return written;
}

void PackedText::Close() {
  if (ended_) return;
  if (!between_ || !head_.empty()) Fail("it is cut off");
  ended_ = true;
}

}  // namespace rankscope::replay
