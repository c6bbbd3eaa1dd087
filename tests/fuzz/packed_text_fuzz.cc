// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a packed file: it comes to its end, gives no more text than is allowed, and the same
// text however the file is cut into blocks.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "exporter/replay/packed_text.h"

using rankscope::replay::PackedText;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

constexpr int64_t kMost = 1 << 20;

std::string Unpack(std::string_view packed, size_t block) {
  PackedText unpacker(kMost);
  std::string text;
  std::string buffer(4096, '\0');
  while (!packed.empty() && !unpacker.ended()) {
    std::string_view part = packed.substr(0, block);
    packed.remove_prefix(part.size());
    while (true) {
      const size_t size = unpacker.Read(part, buffer.data(), buffer.size());
      text.append(buffer, 0, size);
      if (size < buffer.size()) break;
    }
    Check(part.empty() || unpacker.ended());
  }
  unpacker.Close();
  Check(unpacker.ended());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view packed(reinterpret_cast<const char*>(data), size);
  (void)rankscope::replay::PackerOf(packed);
  const std::string whole = Unpack(packed, size + 1);
  Check(static_cast<int64_t>(whole.size()) <= kMost + static_cast<int64_t>(size + 1) * 1100 + 4096);
  const std::string parts = Unpack(packed, 1 + size / 7);
  if (static_cast<int64_t>(whole.size()) < kMost) Check(whole == parts);
  return 0;
}
