// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who holds up a collective that does not complete? From how far each rank had come in each process
// group (knowledge of families.md 6.4):
//
//   1. a member that has written a dump and appears nowhere in a group whose other members wait is
//      absent: it never came;
//   2. else the rank with the largest lag, the sum over its groups of (furthest member - own) of
//      enqueued and completed operations, where it stands out from the median of all ranks. A
//      constant offset that most share (groups numbered differently per rank) is in the median and
//      vanishes.
//
// A member without a dump is not absent: whether it ever came, nobody has said. And ranks that wait
// at one place for different operations disagree (a desync): then nobody lags. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rankscope::reports {

// More than half cannot be the exception; of two, one can.
constexpr bool IsFew(int64_t count, int64_t of) {
  return count > 0 && (2 * count < of || (of == 2 && count == 1));
}

// How far one rank has come in one group.
struct Standing {
  int32_t rank = -1;  // global
  int64_t enqueued = -1;
  int64_t completed = -1;  // -1 where the source cannot tell; then of no member
  // The oldest operation that has not completed, where known.
  int64_t pending = -1;
  std::string operation;
  std::string sizes;
};

struct GroupStandings {
  std::string name;
  std::vector<int32_t> members;     // global ranks; empty = not told
  std::vector<Standing> standings;  // at most one per rank
};

struct Culprits {
  enum class By : uint8_t { kNobody, kAbsent, kLag };
  By by = By::kNobody;
  std::vector<int32_t> ranks;   // rising
  std::string group;            // where it shows most
  int64_t lag = 0;              // of the furthest behind, above the median
  int64_t own = -1;             // kLag: what it has enqueued in that group
  int64_t furthest = -1;        // and the furthest member
  int64_t waiting = 0;          // members of that group with operations that do not complete
  std::string operation;        // that they wait for
  std::vector<int32_t> silent;  // members of a waiting group that nobody has told anything of
};

struct Desync {
  bool found = false;
  bool sizes = false;  // the same operation, of different sizes
  std::string group;
  int64_t sequence = -1;
  std::vector<int32_t> ranks;  // the fewer ones
  std::string theirs, others;  // what they wait for, and what the rest waits for
  int64_t other_ranks = 0;
};

// `told`: the ranks that have said anything at all, rising.
Culprits FindCulprits(std::span<const GroupStandings> groups, std::span<const int32_t> told);

Desync FindDesync(std::span<const GroupStandings> groups);

}  // namespace rankscope::reports
