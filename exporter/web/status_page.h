// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The page at `/`: jobs with their verdicts, every source with its state. One HTML document
// without scripts or references, rendered from the published state; everything that came from the
// world is escaped. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/metrics/published.h"

namespace rankscope::web {

std::string StatusPage(const metrics::Published& published);

// The places in `jobs` of those that the page shows, in its order: the running ones, then those
// that have ended, the newest first, as long as there is room. A job takes some 10 kB of the page.
std::vector<size_t> ShownOnPage(const metrics::JobList& jobs);
inline constexpr size_t kMostJobsOfPage = 64;

// Nothing may be loaded or run; only the page's own style, by its hash.
std::string ContentSecurityPolicy();

// What stands between <style> and </style>.
std::string_view StyleSheet();

// Escapes for text and for attributes in double quotes.
void AppendEscaped(std::string_view text, std::string& out);

}  // namespace rankscope::web
