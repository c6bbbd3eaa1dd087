// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that ended with 0, which the incident log keeps because it may be early: features judge
// that. Pure.
#pragma once

#include <map>

#include "detectors/windows/incident_log.h"
#include "detectors/windows/job_window.h"

namespace rankscope::windows {

// The shape of such a candidate, whose role is advice.
inline constexpr std::string_view kEndedWell = "ended_well";

// One of the ranks that run, or have just ended, is known to have: the first is enough, since a
// node may have a thousand.
bool KnowsWhoEndedWell(const IncidentLog& log, const std::map<int32_t, RankWindow>& ranks);

// How many of the candidates are no failures for that reason.
int64_t CountEndedWell(const IncidentLog& log);

}  // namespace rankscope::windows
