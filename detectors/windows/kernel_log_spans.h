// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When this node's kernel log was read without a gap: only then does its silence say anything. A
// record that was overwritten before it was read, or a time in which nobody read, may have held the
// very line. Bounded. Single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "detectors/model/observation.h"

namespace rankscope::windows {

class KernelLogSpans {
 public:
  static constexpr size_t kMostSpans = 16;  // of more, the newest
  // A source tells of further losses every ten seconds at the latest.
  static constexpr Duration kLossIsOlder = Seconds(10);

  // What the source "kmsg" says of itself; others are passed over.
  void OnSource(const SourceState& state, Timestamp t);
  // Nobody has read since then.
  void OnAway(Timestamp since);
  // This is what a daemon before ours knew, until `last`; `now` is what ours has heard since.
  void GoOn(const KernelLogSpans& now, Timestamp last);

  // Whether all between the two was read, as far as is known; the future counts as read.
  bool Covers(Timestamp from, Timestamp to) const;

  template <class A>
  void Fields(A& a) {
    a(spans_, since_, lost_);
    while (spans_.size() > kMostSpans) spans_.pop_front();  // restored from damaged bytes
  }

 private:
  struct Span {
    Timestamp begin, end;

    template <class A>
    void Fields(A& a) {
      a(begin, end);
    }
  };
  void Close(Timestamp end);

  std::deque<Span> spans_;
  std::optional<Timestamp> since_;  // absent: nobody reads
  int64_t lost_ = 0;
};

}  // namespace rankscope::windows
