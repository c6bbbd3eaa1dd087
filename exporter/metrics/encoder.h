// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Snapshot -> bytes. One row per exposition format; a new format is a new row and its file. Pure;
// any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "exporter/metrics/snapshot.h"

namespace rankscope::metrics {

struct Encoding {
  std::string_view media_type;    // what a client names in Accept
  std::string_view content_type;  // what the answer says, exactly
  void (*append)(const Snapshot& snapshot, std::string& out);
};

// In order of preference; the first answers whoever names none of them.
std::span<const Encoding> Encodings();

// Prometheus text format 0.0.4.
void AppendText(const Snapshot& snapshot, std::string& out);

// The shortest text that reads back as `value`; NaN, +Inf, -Inf as Prometheus spells them.
void AppendValue(double value, std::string& out);

// Escapes a label's value: backslash, quote, newline. Invalid UTF-8 becomes U+FFFD, which
// Prometheus accepts.
void AppendLabelValue(std::string_view value, std::string& out);

}  // namespace rankscope::metrics
