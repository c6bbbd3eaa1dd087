// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/compression.h"

#include <zlib.h>

namespace rankscope::http {

std::optional<std::string> Gzip(std::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;  // 32 KiB, with gzip's head instead of zlib's
  constexpr int kMemoryLevel = 8;       // zlib's default: 256 KiB while it runs
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  // zlib does not write through next_in; without ZLIB_CONST it is declared as if it did.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole) return std::nullopt;
  return out;
}

}  // namespace rankscope::http
