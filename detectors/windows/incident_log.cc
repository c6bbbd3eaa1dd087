// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/incident_log.h"

#include <algorithm>
#include <functional>

namespace rankscope::windows {
namespace {

// What a rank was waiting for: ranks that wait for different things are told apart by it.
bool SameCollective(const logs::Incident& a, const logs::Incident& b) {
  if (a.kind != logs::IncidentKind::kCollectiveTimeout) return true;
  const auto value = [](const logs::Incident& incident, std::string_view key) {
    for (const KeyValue& field : incident.fields) {
      if (field.key == key) return std::string_view(field.value);
    }
    return std::string_view();
  };
  constexpr std::string_view kKeys[] = {"pg", "seq", "op", "numel"};
  return std::all_of(std::begin(kKeys), std::end(kKeys),
                     [&](std::string_view key) { return value(a, key) == value(b, key); });
}

// The same thing said again, by another rank or through another pipe.
bool SameIncident(const Candidate& a, const Candidate& b) {
  const logs::Incident& x = a.incident;
  const logs::Incident& y = b.incident;
  // The message first among the texts: it tells nearly all apart.
  return a.store == b.store && a.attempt == b.attempt && x.kind == y.kind && x.role == y.role &&
         x.signal == y.signal && x.exit_code == y.exit_code && x.message == y.message &&
         x.sub == y.sub && x.exception_type == y.exception_type && x.shape == y.shape &&
         SameCollective(x, y);
}

// Equal for the same incident; all that SameIncident compares but the attempt, which may change.
uint64_t KeyOf(const Candidate& candidate) {
  const logs::Incident& incident = candidate.incident;
  uint64_t key = std::hash<std::string_view>()(incident.message);
  for (const int64_t part : {int64_t{incident.signal}, int64_t{incident.exit_code},
                             static_cast<int64_t>(incident.kind)}) {
    key = (key ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15;
  }
  return key;
}

void AddRank(std::vector<int32_t>& ranks, int32_t rank) {
  if (rank < 0) return;
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (at != ranks.end() && *at == rank) return;
  if (ranks.size() < IncidentLog::kMaxRanks) ranks.insert(at, rank);
}

// A second record of the same act may know more of it: who asked for it.
void AddFields(const std::vector<KeyValue>& more, std::vector<KeyValue>& fields) {
  for (const KeyValue& field : more) {
    const bool known = std::any_of(fields.begin(), fields.end(), [&field](const KeyValue& each) {
      return each.key == field.key;
    });
    if (!known) fields.push_back(field);
  }
}

}  // namespace

void IncidentLog::Add(Candidate candidate) {
  candidate.order = next_order_++;
  AddRank(candidate.ranks, candidate.incident.rank);
  if (keys_.size() != candidates_.size()) {
    keys_.clear();
    for (const Candidate& known : candidates_) keys_.push_back(KeyOf(known));
  }
  const uint64_t key = KeyOf(candidate);
  // Deaths of different processes are different candidates even when nobody knows their ranks.
  for (size_t i = candidates_.size(); i-- > 0;) {
    if (keys_[i] != key) continue;
    Candidate* const seen = &candidates_[i];
    if (!SameIncident(*seen, candidate)) continue;
    if (candidate.process.pid != 0 && candidate.process != seen->process) continue;
    if (candidate.incident.pid != 0 && candidate.incident.pid != seen->incident.pid) continue;
    if (candidate.progress_before - seen->progress_before < kProgressBetween) {
      ++seen->times;
      if (candidate.store == proto::STORE_SCHEDULER)
        AddFields(candidate.incident.fields, seen->incident.fields);
      for (const int32_t rank : candidate.ranks) AddRank(seen->ranks, rank);
      return;
    }
    // The run went on after the first and has come to it again: the newest is what it may have died
    // of.
    candidate.times += seen->times;
    for (const int32_t rank : seen->ranks) AddRank(candidate.ranks, rank);
    candidates_.erase(candidates_.begin() + static_cast<int64_t>(i));
    keys_.erase(keys_.begin() + static_cast<int64_t>(i));
    break;
  }
  // Many at once: what is behind them has to move up.
  if (candidates_.size() >= kFirst + 2 * kNewest) DropSome();
  candidates_.push_back(std::move(candidate));
  keys_.push_back(key);
}

// Of a thousand ranks all but one tell of a consequence, so these go and errors of a rank's own
// stay, as far as there is room.
void IncidentLog::DropSome() {
  constexpr size_t kMostKept = kNewest / 4;
  const auto own = [](const Candidate& known) {
    return known.incident.role == logs::Role::kInitiating &&
           known.incident.kind != logs::IncidentKind::kPeerLost;
  };
  size_t to = kFirst;
  for (size_t from = kFirst; from < candidates_.size(); ++from) {
    if (from < kFirst + kNewest && (to - kFirst >= kMostKept || !own(candidates_[from]))) {
      ++dropped_;
      continue;
    }
    if (to != from) {
      candidates_[to] = std::move(candidates_[from]);
      keys_[to] = keys_[from];
    }
    ++to;
  }
  candidates_.resize(to);
  keys_.resize(to);
}

void IncidentLog::MoveToAttempt(int32_t from, int32_t to) {
  for (Candidate& candidate : candidates_) {
    if (candidate.attempt == from) candidate.attempt = to;
  }
}

}  // namespace rankscope::windows
