// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as what py-spy prints of a process: frames are few, short, and hold nothing but names.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/probes/wait/python_stack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto frames =
      rankscope::probes::MainFrames(std::string_view(reinterpret_cast<const char*>(data), size));
  if (frames.size() > rankscope::probes::kPythonFrames) std::abort();
  for (const std::string& frame : frames) {
    if (frame.size() > 256 || frame.find(':') == std::string::npos) std::abort();
    for (const char c : frame) {
      if (c < ' ' || c > '~' || c == '/' || c == '"') std::abort();
    }
  }
  return 0;
}
