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

// name{job_id="8841",rank=~"0|3"}: where the numbers of these ranks can be asked for again.
std::string RankQuery(std::string_view name, const windows::JobWindow& job,
                      const std::vector<int32_t>& ranks);
// An evidence of these ranks, cited by that query, of what was seen between the two times.
Evidence OfRanks(EvidenceKind kind, proto::Store store, std::string_view series,
                 const windows::JobWindow& job, std::vector<int32_t> ranks);
// 0 where there is none.
double MedianOrZero(const std::vector<double>& values);

}  // namespace rankscope::features
