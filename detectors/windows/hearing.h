// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What of a job was not observed, and when: the daemon was away or stopped, a source was not there
// or has lost something, a process was there before anybody looked. Such a gap is told and never
// evidence about the job: time that passes in it is no silence. Bounded. Single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::windows {

enum class UnheardWhy : uint8_t { kAway, kStopped };

// Nothing at all was observed in it.
struct UnheardSpan {
  Timestamp begin, end;
  uint8_t why = 0;           // UnheardWhy
  bool output_read = false;  // what the job wrote meanwhile was read from its files

  template <class A>
  void Fields(A& a) {
    a(begin, end, why, output_read);
  }
};

// What one source has missed since the job began.
struct SourceGap {
  std::string name;
  int64_t lost = 0;   // events or bytes of which no line tells
  bool late = false;  // it came up after the job had begun
  Timestamp first;    // when it was first not there
  Timestamp since;    // it is not there since then; 0 = it is
  Duration total;     // of the times that are over

  bool was_absent() const { return first.ns != 0; }
  template <class A>
  void Fields(A& a) {
    a(name, lost, late, first, since, total);
  }
};

class Hearing {
 public:
  static constexpr size_t kMostSpans = 32;    // of more, the newest; count and sum keep all
  static constexpr size_t kMostSources = 64;  // as many as the engine knows
  static constexpr size_t kNameCap = 64;

  // The job began at `t`: what was missed before is not its matter.
  void Begin(Timestamp t) { begin_ = t; }

  void OnSpan(Timestamp begin, Timestamp end, UnheardWhy why);
  // `before`: the same source's last word; null = it is the first.
  void OnSource(const SourceState* before, const SourceState& now, Timestamp t);
  // What the job wrote in the newest span, or before anybody looked, was read from its files, all
  // of it.
  void OnOutputRead() {
    if (spans_.empty()) earlier_read_ = true;
    if (!spans_.empty()) spans_.back().output_read = true;
  }
  // A process of the job was there before anybody looked.
  void OnEarlierProcess() { ++earlier_processes_; }
  // A line for which there was no room.
  void OnLineDropped() { ++lines_dropped_; }

  // Oldest first; of more than kMostSpans the newest.
  const std::deque<UnheardSpan>& spans() const { return spans_; }
  int64_t times() const { return times_; }
  Duration total() const { return total_; }
  const std::vector<SourceGap>& sources() const { return sources_; }
  int64_t earlier_processes() const { return earlier_processes_; }
  // What they had written before was read from its files.
  bool earlier_read() const { return earlier_read_; }
  int64_t lines_dropped() const { return lines_dropped_; }
  Timestamp begin() const { return begin_; }

  // How much of the time between the two nothing was observed.
  Duration Within(Timestamp from, Timestamp to) const;
  // The same of spans in which the daemon ran and did not get to work: it was stopped, or its node.
  Duration StoppedWithin(Timestamp from, Timestamp to) const;
  // When somebody listened again after the newest span; 0 = there was none.
  Timestamp resumed() const { return spans_.empty() ? Timestamp{} : spans_.back().end; }
  // Whether a span ends no longer than `margin` before `t`, or later.
  bool Near(Timestamp t, Duration margin) const;

  template <class A>
  void Fields(A& a) {
    a(begin_, spans_, times_, total_, sources_, earlier_processes_, lines_dropped_, earlier_read_);
    while (spans_.size() > kMostSpans) spans_.pop_front();  // restored from damaged bytes
  }

 private:
  SourceGap* FindOrAdd(std::string_view name);

  Timestamp begin_;
  std::deque<UnheardSpan> spans_;
  int64_t times_ = 0;
  Duration total_;
  std::vector<SourceGap> sources_;
  int64_t earlier_processes_ = 0;
  int64_t lines_dropped_ = 0;
  bool earlier_read_ = false;
};

}  // namespace rankscope::windows
