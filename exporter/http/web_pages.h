// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The pages for browsers as answers: all jobs, one job, the node. Without log text and others'
// commands for who may not see these. Any thread.
#pragma once

#include <string_view>

#include "exporter/http/message.h"
#include "exporter/http/state.h"
#include "exporter/http/target.h"

namespace rankscope::http {

// A line per job; a thousand of them are some 500 kB.
inline constexpr size_t kJobsOfHomePage = 500;

Response HomePage(const Request& request, const Parameters& parameters, const State& state);
Response JobPage(const Request& request, std::string_view job_id, const State& state);
Response NodePage(const Request& request, const State& state);

}  // namespace rankscope::http
