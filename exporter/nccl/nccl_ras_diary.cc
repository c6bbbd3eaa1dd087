// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/nccl_ras_diary.h"

#include <algorithm>
#include <utility>

#include "detectors/reports/ras_report.h"

namespace rankscope::collectors {

using reports::RasCommunicator;
using reports::RasRank;
using reports::RasReport;

NcclRasDiary::Ledger NcclRasDiary::Sum(const RasReport& report) {
  constexpr size_t kMost = 4096;  // a job in trouble names some dozen
  Ledger ledger;
  ledger.roster = reports::ReadRoster(report);
  ledger.hard = !report.dead.empty() || !report.unresponsive.empty() || report.dead_told > 0 ||
                report.unresponsive_told > 0 || report.timeouts > 0;
  for (const RasCommunicator& communicator : report.communicators) {
    ledger.hard = ledger.hard || communicator.incomplete || communicator.failed;
    if (!communicator.mismatch) continue;
    std::map<size_t, std::pair<int64_t, int64_t>> range;
    const auto note = [&range](size_t operation, int64_t launched) {
      const auto [found, added] = range.emplace(operation, std::pair(launched, launched));
      found->second.first = std::min(found->second.first, launched);
      found->second.second = std::max(found->second.second, launched);
    };
    for (const reports::RasCount& count : communicator.counts)
      note(count.operation, count.launched);
    for (const RasRank& rank : communicator.ranks) {
      for (size_t i = 0; i < rank.launched.size(); ++i) {
        if (rank.launched[i] >= 0) note(i, rank.launched[i]);
      }
    }
    for (const auto& [operation, counts] : range) {
      if (counts.first == counts.second || ledger.furthest.size() >= kMost) continue;
      ledger.furthest[communicator.id + '/' + std::to_string(operation)] = counts.second;
    }
  }
  return ledger;
}

bool NcclRasDiary::Take(std::vector<Entry>& told, Timestamp t, std::string_view text) {
  const std::string_view kept = text.substr(0, kMaxTold);
  if (bytes_ + kept.size() > kMaxToldBytes) {
    ++untold_;
    return false;
  }
  bytes_ += kept.size();
  last_told_ = t;
  told.push_back({t, std::string(kept)});
  return true;
}

std::vector<NcclRasDiary::Entry> NcclRasDiary::Add(Timestamp t, std::string_view text) {
  std::vector<Entry> told;
  Ledger ledger = Sum(reports::ReadRas(text));
  // Of the pairs that differ now, one at least has stood since the report before.
  const bool stands =
      std::any_of(ledger.furthest.begin(), ledger.furthest.end(), [this](const auto& entry) {
        const auto was = before_.furthest.find(entry.first);
        return was != before_.furthest.end() && was->second == entry.second;
      });
  const bool trouble = ledger.hard || stands;
  const bool newcomers = rosters_ < kMaxRosters && !ledger.roster.members.empty() &&
                         ledger.roster.members != roster_.members;
  if (trouble) {
    if (!std::exchange(in_trouble_, true)) {
      told_of_it_ = 0;
      if (!held_.text.empty() && stands) Take(told, held_.t, held_.text);
    }
    const Duration apart = told_of_it_ < kToldAtOnce ? kToldApart : kToldAgain;
    if (told_of_it_ == 0 || t - last_told_ >= apart) {
      if (Take(told, t, text)) ++told_of_it_;
    }
    held_ = {};
  } else if (!any_ || std::exchange(in_trouble_, false) || newcomers) {
    Take(told, t, text);
    // It may prove to stand, and has been told then.
    held_ = {};
  } else {
    held_ = {t, std::string(text.substr(0, kMaxTold))};
  }
  if (newcomers && !told.empty() && told.back().t == t) {
    roster_ = ledger.roster;
    ++rosters_;
  }
  any_ = true;
  before_ = std::move(ledger);
  return told;
}

}  // namespace rankscope::collectors
