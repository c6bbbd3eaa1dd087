// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/encoder.h"

namespace rankscope::metrics {
namespace {

struct Encoder {
  size_t typical_series_bytes;  // of a name of 30, labels of 30
  void (*append)(const Snapshot& snapshot, std::string& out, GroupSet groups);
};

// By Format.
constexpr std::array<Encoder, kFormatNames.size()> kEncoders = {
    {{72, AppendText}, {72, AppendOpenMetrics}, {64, AppendProtobuf}}};

}  // namespace

void Append(Format format, const Snapshot& snapshot, GroupSet groups, std::string& out) {
  const Encoder& encoder = kEncoders[static_cast<size_t>(format)];
  size_t series = 0;
  for (const Family& family : snapshot.families) {
    if (groups.Has(*family.row)) series += family.SeriesCount();
  }
  out.reserve(out.size() + series * encoder.typical_series_bytes);
  encoder.append(snapshot, out, groups);
}

}  // namespace rankscope::metrics
