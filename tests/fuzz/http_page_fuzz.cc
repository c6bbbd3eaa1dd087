// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the answer of another program's HTTP server, and as the URL that an operator gave:
// an answer is a whole body or an error, never both.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/loop/http_page.h"

using namespace rankscope::collectors;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const HttpPage page = ReadAnswer(text);
  if (page.body.size() > size || page.type.size() > size) std::abort();
  if (!page.error.empty() && page.refused) std::abort();
  if (const auto url = ParseHttpUrl(text)) {
    if (url->host.empty() || url->port.empty() || !url->path.starts_with('/')) std::abort();
    for (const char c : url->host + url->port + url->path) {
      if (c == '\r' || c == '\n') std::abort();  // it would end a header of the request
    }
  }
  return 0;
}
