// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the variables that name a process's GPUs, and as a prolog's list of them: no more
// GPUs than a node can have, and no index that no GPU has.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/attribution/gpu_environment.h"

using namespace rankscope;
using namespace rankscope::attribution;

namespace {

void Check(const std::vector<GpuName>& names) {
  if (names.size() > kMaxGpusNamed) std::abort();
  for (const GpuName& name : names) {
    if (name.index > kMaxGpuIndex || name.index < -1) std::abort();
    if (!name.uuid.empty() && name.uuid.size() < kMinUuidCharacters) std::abort();
  }
}

}  // namespace

// Lines "KEY=value"; a first byte of odd value stands for a container.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  Check(ReadGpuMapping(text));
  std::vector<KeyValue> environment;
  while (!text.empty() && environment.size() < 32) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    environment.push_back(
        {std::string(line.substr(0, equals)), std::string(line.substr(equals + 1))});
  }
  for (const std::vector<int32_t>& allowed : {std::vector<int32_t>{}, {0, 2, 5}}) {
    const GpuEnvironment gpus = ReadGpuEnvironment(environment, (data[0] & 1) != 0, allowed);
    Check(gpus.given);
    Check(gpus.own);
  }
  return 0;
}
