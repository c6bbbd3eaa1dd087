// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The page at `/`: every job with its verdict, every source with its state. One HTML document
// without scripts or references, rendered from the published state; everything that came from the
// world is escaped. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "exporter/metrics/published.h"

namespace rankscope::web {

std::string StatusPage(const metrics::Published& published);

// Nothing may be loaded or run; only the page's own style, by its hash.
std::string ContentSecurityPolicy();

// What stands between <style> and </style>.
std::string_view StyleSheet();

// Escapes for text and for attributes in double quotes.
void AppendEscaped(std::string_view text, std::string& out);

}  // namespace rankscope::web
