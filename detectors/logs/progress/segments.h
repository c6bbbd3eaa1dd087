// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines of "key: value" between bars, which Megatron-LM began and NeMo took over. For those
// dialects. Stateless; any thread.
#pragma once

#include <string_view>

#include "detectors/logs/progress/plain_record.h"
#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {

// The key may hold a colon of its own only behind a unit ("(ms)").
struct Segment {
  std::string_view key;
  std::string_view value;
};

// Takes the next segment off `rest`; false at its end.
bool NextSegment(std::string_view& rest, Segment& segment);

// "iteration       71/     100" at the start of `text`.
bool ReadIteration(std::string_view text, Number& step, Number& total);

// Every segment of `rest` becomes a fact. Of several losses the most telling counts.
void TakeSegments(std::string_view rest, Progress& progress);

// The same where `rest` is nothing but segments of plain keys and plain numbers; false, and `out`
// of no use, where it holds anything else.
bool ReadPlainSegments(std::string_view rest, PlainItems& out);

}  // namespace rankscope::logs
