// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The request's target as text: percent-decoding and query parameters. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/result.h"

namespace rankscope::http {

// nullopt: a '%' without two hexadecimal digits, or a control character behind it. `plus_is_space`:
// in queries.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space);

// "/metrics" of "/metrics" and of "http://host:1/metrics", decoded. The error says what is wrong
// with it.
Result<std::string> DecodePath(std::string_view path);

using Parameters = std::vector<std::pair<std::string, std::string>>;

// a=1&b=2 in order; a name without '=' has an empty value.
Result<Parameters> ParseQuery(std::string_view query);

// The job that ?job_id= or its alias ?slurm_job_id= asks for; nullopt: none. Two different ones and
// an empty one are errors.
Result<std::optional<std::string>> JobIdOf(const Parameters& parameters);

// ns since 1970 of "1795444481", "1795444481.5" or "2026-11-20T16:00:50[.496](Z|+01:00)"; nullopt:
// neither, or before 1970.
std::optional<int64_t> ParseWallTime(std::string_view text);

}  // namespace rankscope::http
