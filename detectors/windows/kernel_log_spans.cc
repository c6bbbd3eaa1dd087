// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/kernel_log_spans.h"

#include <algorithm>

namespace rankscope::windows {

void KernelLogSpans::Close(Timestamp end) {
  if (since_ && *since_ < end) spans_.push_back({*since_, end});
  if (spans_.size() > kMostSpans) spans_.pop_front();
  since_.reset();
}

void KernelLogSpans::OnSource(const SourceState& state, Timestamp t) {
  if (state.name != "kmsg") return;
  // A source that was started anew counts from zero.
  const bool lost = state.lost > 0 && state.lost != lost_;
  lost_ = state.lost;
  if (state.state != Availability::kUp) return Close(t);
  if (lost) Close({t.ns - kLossIsOlder.ns});
  if (!since_) since_ = t;
}

void KernelLogSpans::OnAway(Timestamp since) {
  Close(since);
}

void KernelLogSpans::GoOn(const KernelLogSpans& now, Timestamp last) {
  Close(last);
  spans_.insert(spans_.end(), now.spans_.begin(), now.spans_.end());
  while (spans_.size() > kMostSpans) spans_.pop_front();
  since_ = now.since_;
  lost_ = now.lost_;
}

bool KernelLogSpans::Covers(Timestamp from, Timestamp to) const {
  if (since_ && *since_ <= from) return true;
  return std::any_of(spans_.begin(), spans_.end(),
                     [from, to](const Span& span) { return span.begin <= from && span.end >= to; });
}

}  // namespace rankscope::windows
