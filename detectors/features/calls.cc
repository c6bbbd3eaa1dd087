// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/calls.h"

#include <utility>

#include "detectors/windows/series/statistics.h"

namespace rankscope::features {

std::string RankQuery(std::string_view name, const windows::JobWindow& job,
                      const std::vector<int32_t>& ranks) {
  std::string query(name);
  query += "{job_id=\"" + job.job_id() + "\"";
  if (ranks.size() == 1) query += ",rank=\"" + std::to_string(ranks.front()) + "\"";
  if (ranks.size() > 1) {
    query += ",rank=~\"";
    for (size_t i = 0; i < ranks.size(); ++i)
      query += (i == 0 ? "" : "|") + std::to_string(ranks[i]);
    query += "\"";
  }
  return query + "}";
}

Evidence OfRanks(EvidenceKind kind, proto::Store store, std::string_view series,
                 const windows::JobWindow& job, std::vector<int32_t> ranks) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = store;
  evidence.values.Set(FieldId::kQuery, RankQuery(series, job, ranks));
  evidence.ranks = std::move(ranks);
  return evidence;
}

double MedianOrZero(const std::vector<double>& values) {
  return values.empty() ? 0 : windows::Median(values);
}

}  // namespace rankscope::features
