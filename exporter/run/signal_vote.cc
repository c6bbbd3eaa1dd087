// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/signal_vote.h"

#include <algorithm>

namespace rankscope::run {

void SignalVote::Received(int signo, Timestamp now) {
  std::erase_if(votes_, [now](const Entry& vote) { return now.ns - vote.t.ns > kMemory.ns; });
  const auto vote = std::find_if(votes_.begin(), votes_.end(),
                                 [signo](const Entry& entry) { return entry.signo == signo; });
  if (vote != votes_.end()) {
    votes_.erase(vote);
    return;
  }
  waiting_.push_back({signo, now});
}

void SignalVote::GuardianReceived(int signo, Timestamp now) {
  const auto entry = std::find_if(waiting_.begin(), waiting_.end(),
                                  [signo](const Entry& waiting) { return waiting.signo == signo; });
  if (entry != waiting_.end()) {
    waiting_.erase(entry);
    return;
  }
  std::erase_if(votes_, [signo](const Entry& vote) { return vote.signo == signo; });
  votes_.push_back({signo, now});
}

std::optional<Timestamp> SignalVote::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return Timestamp{waiting_.front().t.ns + kSettle.ns};
}

std::vector<int> SignalVote::TakeDue(Timestamp now) {
  std::vector<int> due;
  std::erase_if(waiting_, [&](const Entry& entry) {
    if (now.ns - entry.t.ns < kSettle.ns) return false;
    due.push_back(entry.signo);
    return true;
  });
  return due;
}

}  // namespace rankscope::run
