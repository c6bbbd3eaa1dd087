// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// /verdict: one job's document, or those of all jobs, the worst first, in pages. A body is put
// together of documents that all clients share, so that an answer costs its pointers and not its
// size. Any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "exporter/http/message.h"
#include "exporter/http/state.h"
#include "exporter/http/target.h"

namespace rankscope::http {

// A verdict is some 10 kB, so a page some 1 MB; the longest that may be asked for is ten of them.
inline constexpr size_t kJobsOfPage = 100;
inline constexpr size_t kMostJobsOfPage = 1000;

// ?job_id= one; else those that the other parameters ask for (job_query.h). Where more follow,
// `next` of the JSON and a Link header say where.
Response VerdictPage(const Request& request, const Parameters& parameters, const State& state);
// /digest?job_id=: one line of a job's verdict, for the job's comment.
Response DigestPage(const Request& request, const Parameters& parameters, const State& state);

// A reused id names two jobs: the running one, else the later. Null: it is not known here.
const JobDocument* FindJob(const State& state, std::string_view job_id);
Response UnknownJob(const State& state, std::string_view job_id);

// Adds the entity tag; without a body where the client has this very content.
void Tag(const Request& request, std::string tag, Response& response);

}  // namespace rankscope::http
