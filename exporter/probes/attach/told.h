// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was last told of something that is counted, so that it is told again only when there is
// news, and not too often. Loop thread only.
#pragma once

#include <cstdint>

#include "detectors/model/ids.h"

namespace rankscope::probes {

struct Told {
  // What grows is told again after this.
  static constexpr Duration kAgainAfter = Seconds(5);

  uint64_t times = 0;
  Timestamp at;

  // Whether the count is to be told now, and then it counts as told; `ended`: it will not grow any
  // more, so what is left is told at once.
  bool TakeNews(uint64_t count, Timestamp now, bool ended) {
    if (count == times) return false;
    if (times != 0 && !ended && now - at < kAgainAfter) return false;
    *this = {count, now};
    return true;
  }
};

}  // namespace rankscope::probes
