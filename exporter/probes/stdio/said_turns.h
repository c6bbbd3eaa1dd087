// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was taken from the kernel's ring and not yet worked off, by turns of users: who writes more
// waits longer, and nobody waits for him (deficit round robin: Shreedhar and Varghese, 1995).
// Within a user the order is that of the ring. How much waits is bounded where it is written, see
// bpf/stdio.bpf.c. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bpf/events/stdio.h"

namespace rankscope::probes {

struct SaidPiece {
  rs_said said{};
  std::string text;
  // Its room in its user's share, given back with the last that holds it.
  std::shared_ptr<const void> room;
};

class SaidTurns {
 public:
  // Of one user before another's turn.
  static constexpr int64_t kTurn = 16 << 10;
  // What a line costs besides its bytes, as so many bytes: 2.5 us of the loop to a byte's 10 ns.
  static constexpr int64_t kLineCost = 256;
  static int64_t CostOf(const SaidPiece& piece);

  void Add(SaidPiece piece);
  // Nothing: none waits.
  std::optional<SaidPiece> Take();

  // Whether anything waits of this process.
  bool Holds(uint32_t pid, uint64_t start_ns) const { return held_.contains({pid, start_ns}); }
  bool empty() const { return users_.empty(); }
  void Clear();

 private:
  struct User {
    std::deque<std::pair<int64_t, SaidPiece>> pieces;  // with their costs
    int64_t credit = 0;
  };
  using Users = std::map<uint32_t, User>;

  void NextUser();

  Users users_;  // who has something
  Users::iterator turn_ = users_.end();
  std::map<std::pair<uint32_t, uint64_t>, int> held_;  // pieces by process
};

}  // namespace rankscope::probes
