// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/incident_log.h"

#include <algorithm>

namespace rankscope::windows {
namespace {

// The same thing said again, by another rank or through another pipe.
bool SameIncident(const Candidate& a, const Candidate& b) {
  const logs::Incident& x = a.incident;
  const logs::Incident& y = b.incident;
  // The message first among the texts: it tells nearly all apart.
  return a.store == b.store && a.attempt == b.attempt && x.kind == y.kind && x.role == y.role &&
         x.signal == y.signal && x.exit_code == y.exit_code && x.message == y.message &&
         x.sub == y.sub && x.exception_type == y.exception_type && x.shape == y.shape;
}

void AddRank(std::vector<int32_t>& ranks, int32_t rank) {
  if (rank < 0) return;
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (at != ranks.end() && *at == rank) return;
  if (ranks.size() < IncidentLog::kMaxRanks) ranks.insert(at, rank);
}

}  // namespace

void IncidentLog::Add(Candidate candidate) {
  candidate.order = next_order_++;
  AddRank(candidate.ranks, candidate.incident.rank);
  // Deaths of different processes are different candidates even when nobody knows their ranks.
  for (auto seen = candidates_.rbegin(); seen != candidates_.rend(); ++seen) {
    if (!SameIncident(*seen, candidate)) continue;
    if (candidate.process.pid != 0 && candidate.process != seen->process) continue;
    if (candidate.incident.pid != 0 && candidate.incident.pid != seen->incident.pid) continue;
    ++seen->times;
    for (const int32_t rank : candidate.ranks) AddRank(seen->ranks, rank);
    return;
  }
  if (candidates_.size() >= kFirst + kNewest) {
    candidates_.erase(candidates_.begin() + kFirst);
    ++dropped_;
  }
  candidates_.push_back(std::move(candidate));
}

void IncidentLog::MoveToAttempt(int32_t from, int32_t to) {
  for (Candidate& candidate : candidates_) {
    if (candidate.attempt == from) candidate.attempt = to;
  }
}

}  // namespace rankscope::windows
