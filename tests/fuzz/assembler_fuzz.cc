// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// However a stream is cut into reads, the lines are the same; redaction keeps lengths and finds
// nothing in its own output.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/redactor.h"

namespace {

using rankscope::LineEnd;
using rankscope::logs::AssembledLine;
using rankscope::logs::LineAssembler;

struct Line {
  std::string text;
  int64_t offset;
  LineEnd end;
  int32_t cut_bytes;
  bool operator==(const Line&) const = default;
};

std::vector<Line> Split(std::string_view bytes, size_t block) {
  std::vector<Line> lines;
  LineAssembler assembler;
  const auto keep = [&](const AssembledLine& line) {
    lines.push_back({std::string(line.text), line.offset, line.end, line.cut_bytes});
  };
  for (size_t i = 0; i < bytes.size(); i += block) assembler.Feed(bytes.substr(i, block), keep);
  assembler.Flush(LineEnd::kFlush, keep);
  if (assembler.offset() != static_cast<int64_t>(bytes.size())) std::abort();
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t block = 1 + data[0] % 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<Line> whole = Split(bytes, bytes.size() + 1);
  if (whole != Split(bytes, block)) std::abort();
  for (const Line& line : whole) {
    if (line.cut_bytes == 0 &&
        bytes.substr(static_cast<size_t>(line.offset), line.text.size()) != line.text) {
      std::abort();
    }
    std::string masked = line.text;
    const bool may = rankscope::logs::MayHoldSecret(masked);
    const int32_t count = rankscope::logs::Redact(masked);
    if (masked.size() != line.text.size() || may != (count > 0)) std::abort();
    for (size_t i = 0; i < masked.size(); ++i) {
      if (masked[i] != line.text[i] && masked[i] != '*') std::abort();
    }
  }
  return 0;
}
