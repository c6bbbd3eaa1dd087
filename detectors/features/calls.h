// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the descriptions of launches and of collectives share: queries, medians over ranks. Private
// to features; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// An evidence of these ranks, cited by a query (promql.h) over so many seconds.
Evidence OfRanks(EvidenceKind kind, proto::Store store, std::string_view query,
                 const windows::JobWindow& job, std::vector<int32_t> ranks, double seconds = 0);
// 0 where there is none.
double MedianOrZero(const std::vector<double>& values);

}  // namespace rankscope::features
