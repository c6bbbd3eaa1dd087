// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/calls.h"

#include <utility>

#include "detectors/features/promql.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {

namespace {

// job_id="8841",rank=~"0|3"
std::string Matchers(const windows::JobWindow& job, const std::vector<int32_t>& ranks) {
  std::string matchers = "job_id=\"" + job.job_id() + "\"";
  if (ranks.size() == 1) matchers += ",rank=\"" + std::to_string(ranks.front()) + "\"";
  if (ranks.size() > 1) {
    matchers += ",rank=~\"";
    for (size_t i = 0; i < ranks.size(); ++i)
      matchers += (i == 0 ? "" : "|") + std::to_string(ranks[i]);
    matchers += "\"";
  }
  return matchers;
}

}  // namespace

Evidence OfRanks(EvidenceKind kind, proto::Store store, std::string_view query,
                 const windows::JobWindow& job, std::vector<int32_t> ranks, double seconds) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = store;
  evidence.values.Set(FieldId::kQuery,
                      FillQuery(query, {.matchers = Matchers(job, ranks), .seconds = seconds}));
  evidence.ranks = std::move(ranks);
  return evidence;
}

double MedianOrZero(const std::vector<double>& values) {
  return values.empty() ? 0 : windows::Median(values);
}

}  // namespace rankscope::features
