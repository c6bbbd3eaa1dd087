// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/ended_well.h"

#include <algorithm>

namespace rankscope::windows {

bool KnowsWhoEndedWell(const IncidentLog& log, const std::map<int32_t, RankWindow>& ranks) {
  return std::any_of(log.all().begin(), log.all().end(), [&ranks](const Candidate& end) {
    if (end.incident.shape != kEndedWell) return false;
    const auto rank = ranks.find(end.incident.rank);
    return rank != ranks.end() && rank->second.process == end.process;
  });
}

int64_t CountEndedWell(const IncidentLog& log) {
  return std::count_if(log.all().begin(), log.all().end(),
                       [](const Candidate& end) { return end.incident.shape == kEndedWell; });
}

}  // namespace rankscope::windows
