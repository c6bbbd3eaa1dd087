// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/compression.h"

#include <zlib.h>

namespace rankscope::http {
namespace {

constexpr int kWindow = 15;      // 32 KiB
constexpr int kMemoryLevel = 8;  // zlib's default: 256 KiB while it runs

void AppendLittleEndian(uint64_t value, int bytes, std::string& out) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

uint32_t Crc(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::optional<std::string> Gzip(std::string_view bytes) {
  constexpr int kGzipWindow = kWindow + 16;  // with gzip's head instead of zlib's
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

GzipPart CompressPart(std::string_view bytes) {
  GzipPart part{{}, Crc(bytes), bytes.size()};
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -kWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return part;
  }
  constexpr size_t kFlush = 16;  // what an empty block at the end takes, amply
  part.bytes.resize(deflateBound(&stream, bytes.size()) + kFlush);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(part.bytes.data());
  stream.avail_out = static_cast<uInt>(part.bytes.size());
  part.whole = deflate(&stream, Z_FULL_FLUSH) == Z_OK && stream.avail_in == 0;
  part.bytes.resize(stream.total_out);
  part.bytes.shrink_to_fit();
  deflateEnd(&stream);
  return part;
}

GzipPart StorePart(std::string_view bytes) {
  GzipPart part{{}, Crc(bytes), bytes.size(), bytes.size() <= 0xFFFF};
  part.bytes.push_back('\0');  // not the last block; stored
  AppendLittleEndian(bytes.size(), 2, part.bytes);
  AppendLittleEndian(~bytes.size(), 2, part.bytes);
  part.bytes.append(bytes);
  return part;
}

std::string_view GzipHead() {
  static constexpr char kHead[] = "\x1f\x8b\x08\0\0\0\0\0\x04\xff";  // deflate, fastest, any system
  return {kHead, 10};
}

void GzipTail::Add(const GzipPart& part) {
  crc_ = static_cast<uint32_t>(crc32_combine(crc_, part.crc, static_cast<z_off_t>(part.size)));
  size_ += part.size;
}

std::string GzipTail::Bytes() const {
  std::string out{'\x03', '\0'};  // the last block, with nothing in it
  AppendLittleEndian(crc_, 4, out);
  AppendLittleEndian(size_, 4, out);
  return out;
}

}  // namespace rankscope::http
