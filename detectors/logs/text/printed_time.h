// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The time of day that programs print before their lines, for putting the files of several ranks in
// order. Local time without a zone, so it can be compared only between files of one job, and only
// says which came first. Forms: ISO dates ("2026-03-02 12:00:10,018", "2026-03-02T12:00:10"),
// "03/02/2026 12:00:10", "03/02 12:00:10" (mmengine), glog's and c10's "E0302 12:00:10.018", "[E302
// 12:00:10.018". Any thread, one clock per stream.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::logs {

class PrintedClock {
 public:
  // `year` for dates that print none.
  explicit PrintedClock(int32_t year = 2000) : year_(year) {}

  // Milliseconds since 1970 of the newest time printed up to and with this line; 0 while there was
  // none. Never goes back: what prints an old date is no clock.
  int64_t Advance(std::string_view line);

  int32_t year() const { return year_; }  // of the newest date that printed one
  bool year_known() const { return year_known_; }

  template <class A>
  void Fields(A& a) {
    a(year_, year_known_, newest_);
  }

 private:
  int32_t year_;
  bool year_known_ = false;
  int64_t newest_ = 0;
};

}  // namespace rankscope::logs
