// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A verdict as its documents: JSON with fixed key order (numbers as numbers, 6 significant digits
// for evidence), and text for people. Deterministic: equal verdicts give equal bytes. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/proto/verdict.pb.h"

namespace rankscope {

// One verdict, one line, keys as in the product's documents (code, family, shows[], ...,
// ruled_out[], undecidable[]). `file`, when not empty, comes first as "file": the form of
// `classify`.
std::string VerdictToJson(const proto::Verdict& verdict, std::string_view file = {});

// {"schema":1,"node":...,"verdicts":[...]}
std::string DocumentToJson(const proto::VerdictDocument& document);

// How much of a verdict is printed.
enum class Detail {
  kAll,
  kShort,  // what decided it, what to do and what is open; of the rest how much there is
};

// For a terminal at 3 AM: headline, shows, implies, what to do, cannot decide, next tests; at most
// 100 columns.
std::string VerdictToText(const proto::Verdict& verdict, Detail detail = Detail::kAll);

// For a job's comment: what it was, how it ended and why, in one line of printable text.
std::string VerdictToDigest(const proto::Verdict& verdict);

// Appends `text` as a JSON string; invalid UTF-8 becomes U+FFFD.
void AppendJsonString(std::string_view text, std::string& out);

// Nanoseconds since the epoch as RFC 3339 in UTC with milliseconds: 2026-11-20T16:00:50.496Z
std::string Rfc3339(int64_t wall_ns);

}  // namespace rankscope
