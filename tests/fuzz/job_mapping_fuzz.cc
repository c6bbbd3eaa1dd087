// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a file of a prolog's job mapping, and as a file's name: what is read are numbers
// that a job can have, and of a file that is cut nothing is read that the whole one does not say.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/job_mapping_text.h"

using namespace rankscope::collectors;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> ids = ReadJobIds(text, true);
  Check(ids.size() <= static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1);
  std::string written;
  for (const std::string& id : ids) {
    Check(!id.empty() && id.size() <= 10);
    Check(id.find_first_not_of("0123456789") == std::string::npos);
    Check(text.find(id) != text.npos);
    written += id + '\n';
  }
  Check(ReadJobIds(written, true) == ids);
  for (size_t cut = 0; cut < size; cut += 1 + size / 16) {
    const std::vector<std::string> some = ReadJobIds(text.substr(0, cut), false);
    Check(some.size() <= ids.size() && std::equal(some.begin(), some.end(), ids.begin()));
  }
  if (IsGpuName(text)) {
    Check(size <= 9 && text.find_first_not_of("0123456789.") == text.npos);
    Check(text.front() != '.' && text.back() != '.');
  }
  return 0;
}
