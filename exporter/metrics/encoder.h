// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Snapshot -> bytes, one function per exposition format over the same families: a series has the
// same name, labels and value in each. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "exporter/metrics/format.h"
#include "exporter/metrics/snapshot.h"

namespace rankscope::metrics {

// The families of `groups`, appended to `out`.
void Append(Format format, const Snapshot& snapshot, GroupSet groups, std::string& out);

// Prometheus text format 0.0.4.
void AppendText(const Snapshot& snapshot, std::string& out, GroupSet groups = GroupSet::All());

// OpenMetrics 1.0 text.
void AppendOpenMetrics(const Snapshot& snapshot, std::string& out,
                       GroupSet groups = GroupSet::All());

// exporter/proto/metrics.proto: MetricFamily messages, each behind its length.
void AppendProtobuf(const Snapshot& snapshot, std::string& out, GroupSet groups = GroupSet::All());

// What OpenMetrics calls a family: name without the suffix that its type implies, and that type.
struct OpenMetricsHead {
  std::string_view name;
  std::string_view type;
};
OpenMetricsHead OpenMetricsHeadOf(const MetricRow& row);

// One line per series; the same in both text formats. Bounds of buckets are written as OpenMetrics
// wants them, 1.0 instead of 1: Prometheus makes that of them in protobuf, and from version 3 on in
// text, and a bucket is the same series in each.
void AppendSamples(const Family& family, std::string& out);

// The shortest text that reads back as `value`; NaN, +Inf, -Inf as Prometheus spells them.
void AppendValue(double value, std::string& out);

// The value of le, which is a number and a label.
void AppendBound(double bound, std::string& out);

// Escapes a label's value: backslash, quote, newline. Invalid UTF-8 becomes U+FFFD, which
// Prometheus accepts.
void AppendLabelValue(std::string_view value, std::string& out);

// One label of a Metric message.
void AppendLabelPair(std::string_view name, std::string_view value, std::string& out);

}  // namespace rankscope::metrics
