// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the file of Slurm's events and as another agent's /events: what is taken for an
// event can be written again and is the same event then.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "exporter/slurm/event_json.h"

using namespace rankscope;
using namespace rankscope::exporter::slurm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto event = EventFromJson(text)) {
    const std::string line = EventToJson(*event);
    if (line.find('\n') != std::string::npos) std::abort();
    const auto again = EventFromJson(line);
    if (!again || EventToJson(*again) != line) std::abort();
  }
  static_cast<void>(EventsFromJson(text));
  return 0;
}
