// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How sure a verdict may be. A tier says what the finding rests on; a cap says what the family
// cannot see from here. The weaker of both is the ground of the confidence, and confidence.inc says
// how often verdicts of such a ground were right.
#pragma once

#include <cstdint>

#include "detectors/proto/verdict.pb.h"

namespace rankscope::families {

using proto::Ground;

// By what a family is recognised. Verdicts of one group are right about equally often.
enum class Group : uint8_t {
  kFailure,   // a process, a GPU or a node failed, or the scheduler restarted the run
  kHang,      // nothing goes on
  kPace,      // slower than it could be
  kLearning,  // the curves
  kEnd,       // somebody ended the run: whether it was well before is another question
  kHealth,
  kUndetermined,
};
inline constexpr int kGroups = 7;

constexpr Ground GroundOf(proto::Tier tier) {
  switch (tier) {
    case proto::TIER_P:
      return proto::GROUND_RECORD;
    case proto::TIER_C:
      return proto::GROUND_TWO_SOURCES;
    case proto::TIER_S:
      return proto::GROUND_ONE_SOURCE;
    default:
      return proto::GROUND_HEURISTIC;
  }
}

// The share of verdicts that were right.
double Confidence(Group group, Ground ground);

namespace cap {

// One link of the chain is inferred: the rest was seen.
inline constexpr Ground kInferred = proto::GROUND_TWO_SOURCES;
inline constexpr Ground kUnseenSide = proto::GROUND_UNSEEN_SIDE;
// One source, and something milder explains part of what it shows.
inline constexpr Ground kOneSource = proto::GROUND_ONE_SOURCE;
inline constexpr Ground kLookalike = proto::GROUND_LOOKALIKE;
inline constexpr Ground kEvenOdds = proto::GROUND_EVEN_ODDS;

}  // namespace cap

}  // namespace rankscope::families
