// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How sure a verdict may be. A tier says what the finding rests on, and so where confidence
// begins; a cap says what the family cannot see from here, and so where it ends.
#pragma once

#include "detectors/proto/verdict.pb.h"

namespace rankscope::families {

constexpr double TierConfidence(proto::Tier tier) {
  switch (tier) {
    case proto::TIER_P:  // a record of the kernel, the scheduler or the parent process proves it
      return 0.95;
    case proto::TIER_C:  // two sources agree
      return 0.85;
    case proto::TIER_S:  // one source
      return 0.65;
    default:  // a heuristic
      return 0.35;
  }
}

namespace cap {

// One link of the chain is inferred: the rest was seen.
inline constexpr double kInferred = 0.85;
// One side was not seen at all: the GPUs, the other nodes, the collectives.
inline constexpr double kUnseenSide = 0.7;
// One source, and something milder explains part of what it shows.
inline constexpr double kOneSource = 0.65;
// Another cause looks the same from here.
inline constexpr double kLookalike = 0.55;
// Another cause is as likely.
inline constexpr double kEvenOdds = 0.5;

}  // namespace cap

}  // namespace rankscope::families
