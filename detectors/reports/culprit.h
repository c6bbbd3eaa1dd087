// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who holds up a collective that does not complete? From how far each rank had come in each process
// group. In a group whose members wait for an operation, they wait for those that have not entered
// it: for members that have written a dump and appear nowhere in the group (absent), for members
// that have entered fewer operations (behind), and, where the recorder times kernels, for members
// whose GPU has not started what the others' GPUs have (not started). A rank that sends or receives
// waits for its peer. Who is waited for and waits for nobody is the one; who waits itself, in this
// or in another group, is a victim:
//
//   group tp2 {4, 5}         4 waits, 5 has not come        5 holds up 4,
//   group dp0 {0, 4, 8, 12}  0, 8, 12 wait, 4 has not come  4 holds up 0, 8, 12, and waits for 5
//
// Numbers of operations are compared within a group only. A member that has entered fewer than the
// others have completed counts from another beginning (nobody completes what a member has not
// entered): what it has completed is what the others have.
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
  std::string operation = {};
  std::string sizes = {};
  std::string state = {};  // of it: scheduled | started; kernels are timed only where asked
  std::vector<int32_t> peers = {};  // global ranks that it sends to or receives from, and waits for
};

struct GroupStandings {
  std::string name;
  std::vector<int32_t> members;     // global ranks; empty = not told
  std::vector<Standing> standings;  // at most one per rank
};

struct Culprits {
  enum class By : uint8_t { kNobody, kAbsent, kLag, kNotStarted, kPeer };
  By by = By::kNobody;
  std::vector<int32_t> ranks;   // rising
  std::string group;            // where it shows most
  int64_t lag = 0;              // kLag: operations of that group
  int64_t own = -1;             // kLag: what it has enqueued in that group
  int64_t furthest = -1;        // and the furthest member
  int64_t sequence = -1;        // that the others wait for
  int64_t waiting = 0;          // members of that group with operations that do not complete
  int64_t held = 0;             // ranks that wait for it, in this group and through others
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
