// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as an operator's file of options for HTTP requests and as a URL: what is accepted
// cannot end a header of the request.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/loop/http_options.h"
#include "exporter/loop/http_url.h"

using namespace rankscope::exporter;

namespace {

void MustBeOneLine(std::string_view text) {
  if (std::any_of(text.begin(), text.end(),
                  [](char c) { return c == '\r' || c == '\n' || c == '\0'; }))
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto options = ReadHttpOptions(text)) {
    for (const std::string& header : options->headers) MustBeOneLine(header);
    MustBeOneLine(options->user);
    MustBeOneLine(options->bearer);
    MustBeOneLine(options->unix_socket);
  } else {
    MustBeOneLine(options.error());
  }
  if (CheckHttpUrl(text)) MustBeOneLine(text);
  return 0;
}
