// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/said_turns.h"

#include <algorithm>

namespace rankscope::probes {

int64_t SaidTurns::CostOf(const SaidPiece& piece) {
  const int64_t lines = std::count(piece.text.begin(), piece.text.end(), '\n') + 1;
  return static_cast<int64_t>(piece.text.size()) + lines * kLineCost;
}

void SaidTurns::Add(SaidPiece piece) {
  ++held_[{piece.said.pid, piece.said.start_ns}];
  const auto [user, is_new] = users_.try_emplace(piece.said.uid);
  user->second.pieces.emplace_back(CostOf(piece), std::move(piece));
  if (users_.size() == 1 && is_new) {
    turn_ = user;
    user->second.credit = kTurn;
  }
}

std::optional<SaidPiece> SaidTurns::Take() {
  if (users_.empty()) return std::nullopt;
  while (turn_->second.credit < turn_->second.pieces.front().first) NextUser();
  User& user = turn_->second;
  auto [cost, piece] = std::move(user.pieces.front());
  user.pieces.pop_front();
  user.credit -= cost;
  if (const auto held = held_.find({piece.said.pid, piece.said.start_ns}); --held->second == 0)
    held_.erase(held);
  if (user.pieces.empty()) {
    const auto done = turn_;
    NextUser();
    users_.erase(done);
    if (users_.empty()) turn_ = users_.end();
  }
  return piece;
}

void SaidTurns::NextUser() {
  if (++turn_ == users_.end()) turn_ = users_.begin();
  turn_->second.credit += kTurn;
}

void SaidTurns::Clear() {
  users_.clear();
  held_.clear();
  turn_ = users_.end();
}

}  // namespace rankscope::probes
