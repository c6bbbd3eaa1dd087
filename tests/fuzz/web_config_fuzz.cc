// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a web-config file: what is accepted cannot end a header of an answer, and every
// mistake names the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "exporter/config/web_config.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto outcome = rankscope::http::ParseWebConfig(text, "web.yaml");
  for (const std::string& problem : outcome.problems) Check(problem.starts_with("web.yaml:"));
  for (const auto& [name, value] : outcome.config.headers) {
    Check(value.find_first_of("\r\n") == std::string::npos && !name.empty());
  }
  for (const auto& [user, hash] : outcome.config.users) {
    Check(hash.size() == 60 && user.find(':') == std::string::npos);
  }
  if (outcome.config.tls && outcome.problems.empty()) {
    Check(!outcome.config.tls->cert.empty() && outcome.config.tls->min_version >= 12);
  }
  return 0;
}
