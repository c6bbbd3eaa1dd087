// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which jobs a request asks for and in which order they come: the worst first, of these those that
// run, then the newest. The same for /verdict and the page of all jobs. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/http/job_document.h"
#include "exporter/http/state.h"
#include "exporter/http/target.h"

namespace rankscope::http {

struct JobQuery {
  // Empty: any.
  std::string state;     // live | provisional | final
  std::string severity;  // critical | warning | info | ok
  std::string user, partition, node;
  std::string family;               // its code or its name
  std::optional<int64_t> since_ns;  // wall time: whose verdict has changed since
  size_t limit = 0;
  std::string after;  // the last job of the page before
};

// The error names the parameter and what it may be. A parameter that is none of these is refused:
// a mistyped filter would show what was not asked for.
Result<JobQuery> JobQueryOf(const Parameters& parameters, size_t limit, size_t most);

struct JobSlice {
  std::vector<const JobDocument*> jobs;
  size_t matching = 0;  // on all pages
  std::string next;     // query of the page behind it; empty: this is the last
};

// nullopt where `after` names no job that is listed here any more.
std::optional<JobSlice> Select(const State& state, const JobQuery& query);

}  // namespace rankscope::http
