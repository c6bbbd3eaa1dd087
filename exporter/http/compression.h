// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// gzip at level 1: a page of metrics shrinks to an eighth at a third of the CPU of level 6, which
// would gain another sixth. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::http {

// Below this an answer fits one packet anyway.
inline constexpr size_t kWorthCompressing = 1200;

// nullopt: no memory; the answer goes out as it is.
std::optional<std::string> Gzip(std::string_view bytes);

// A stretch of a gzip stream that ends at a byte and refers to nothing before it: compressed once,
// it stands in any number of streams, beside any others (RFC 1951, 3.2; zlib's Z_FULL_FLUSH).
struct GzipPart {
  std::string bytes;
  uint32_t crc = 0;    // of the plain bytes
  uint64_t size = 0;   // of the plain bytes
  bool whole = false;  // false: there was no memory for it
};
GzipPart CompressPart(std::string_view bytes);
// The same without compression, for a few bytes; at most 65,535.
GzipPart StorePart(std::string_view bytes);

// What stands before the first part, and behind the last.
std::string_view GzipHead();
class GzipTail {
 public:
  void Add(const GzipPart& part);
  std::string Bytes() const;

 private:
  uint32_t crc_ = 0;
  uint64_t size_ = 0;
};

}  // namespace rankscope::http
