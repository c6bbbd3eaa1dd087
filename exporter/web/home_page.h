// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The page at `/`: a line per job, with the form that filters them. Everything that came from the
// world is escaped. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/metrics/published.h"

namespace rankscope::web {

struct JobListing {
  std::vector<const JobStatus*> jobs;  // in the order of the page
  size_t matching = 0;                 // with those of further pages
  std::string next;                    // "?limit=...", of the next page; empty: there is none
  std::vector<std::pair<std::string_view, std::string>> filters;  // parameter, value; none empty
};

// A job takes about 450 bytes of the page.
std::string HomePage(const JobListing& listing, const metrics::Published& published);

}  // namespace rankscope::web
