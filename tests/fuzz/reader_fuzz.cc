// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any text: no crash, views stay inside what they may point to, and a reader that is saved and
// restored in the middle says the same as one that ran through.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "detectors/logs/reader.h"
#include "detectors/logs/text/assembler.h"

namespace {

using namespace rankscope;        // NOLINT: a fuzz target
using namespace rankscope::logs;  // NOLINT

void Say(std::span<const Record> records, std::string& said) {
  for (const Record& record : records) {
    if (const auto* p = std::get_if<Progress>(&record)) {
      for (const std::string_view text :
           {p->format, p->step_text, p->loss_text, p->grad_norm_text, p->learning_rate_text}) {
        said.append(text).push_back(' ');
      }
    } else if (const auto* m = std::get_if<Marker>(&record)) {
      said.append(m->name).append(m->text).append(m->line);
    } else {
      const auto& incident = std::get<Incident>(record);
      if (incident.line.size() > kCitationCap || incident.message.size() > kMessageCap)
        std::abort();
      said.append(incident.shape).append(incident.exception_type).append(incident.line);
    }
    said.push_back('\n');
  }
}

std::string Run(std::string_view bytes, size_t restore_at) {
  std::string said;
  Reader reader;
  LineAssembler assembler;
  size_t lines = 0;
  const auto feed = [&](const AssembledLine& line) {
    LogLine log_line;
    log_line.text = line.text;
    log_line.offset = line.offset;
    Say(reader.Feed(log_line, Timestamp{line.offset}), said);
    if (++lines == restore_at) {
      Reader restored;
      if (!restored.Restore(reader.Save())) std::abort();
      reader = std::move(restored);
    }
  };
  assembler.Feed(bytes, feed);
  assembler.Flush(LineEnd::kClosed, feed);
  Say(reader.Flush(), said);
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (Run(bytes, 0) != Run(bytes, 1 + data[0] % 16)) std::abort();
  Reader damaged;
  damaged.Restore(bytes);
  return 0;
}
