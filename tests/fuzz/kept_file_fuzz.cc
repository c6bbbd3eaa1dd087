// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a kept document and as a kept line: what is opened is a part of them, what was
// sealed is opened as it was, and with a byte changed or cut off it is not opened. A verdict that
// is read can be printed. A job's name leads to no other folder.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/document/verdict_json.h"
#include "exporter/daemon/kept_file.h"

using namespace rankscope;
using namespace rankscope::exporter;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckMessage(std::string_view text, size_t where, char change) {
  std::string sealed = SealMessage(text);
  Check(OpenMessage(sealed) == text);
  Check(!OpenMessage(std::string_view(sealed).substr(0, where % sealed.size())));
  // What begins like a file of an earlier build is taken as it is.
  const size_t at = 3 + where % (sealed.size() - 3);
  sealed[at] = static_cast<char>(sealed[at] ^ change);
  Check(!OpenMessage(sealed));
}

void CheckLine(std::string_view line, size_t where, char change) {
  std::string sealed = SealLine(line);
  Check(OpenLine(sealed) == line);
  const auto cut = OpenLine(std::string_view(sealed).substr(0, where % sealed.size()));
  Check(!cut || *cut == line);
  const size_t at = where % sealed.size();
  sealed[at] = static_cast<char>(sealed[at] ^ change);
  Check(!OpenLine(sealed));
}

}  // namespace

// The first two bytes say what is changed where.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t where = data[0] * size_t{257};
  const char change = static_cast<char>(data[1] == 0 ? 1 : data[1]);
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  if (const auto message = OpenMessage(text)) {
    Check(text.ends_with(*message));
    proto::Verdict verdict;
    if (verdict.ParseFromArray(message->data(), static_cast<int>(message->size()))) {
      for (const char c : VerdictToJson(verdict)) Check(static_cast<unsigned char>(c) >= 0x20);
    }
  }
  if (const auto line = OpenLine(text))
    Check(text.starts_with(*line) && line->find('\n') == line->npos);
  CheckMessage(text, where, change);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.find("crc32") == line.npos) CheckLine(line, where, change);
  const std::string name = FileNameOf(text);
  Check(name.size() <= 200 && !name.starts_with('.') && name.find('/') == std::string::npos);
  return 0;
}
