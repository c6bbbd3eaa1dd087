// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/oom_count.h"

#include <algorithm>
#include <csignal>
#include <utility>

namespace rankscope::features {

void DescribeOomCount(const windows::JobWindow& job, Citer& citer, JobFeatures& f) {
  const Cause* const primary = f.Primary();
  if (primary == nullptr || primary->incident().kind != logs::IncidentKind::kSignalDeath ||
      primary->incident().signal != SIGKILL) {
    return;
  }
  const windows::Candidate& death = *primary->candidate;
  const Timestamp t = death.incident.t;
  // A killed process may take as long to end; a launcher polls its processes, and then prints.
  constexpr Duration kToEnd = Seconds(2), kToBeSaid = Seconds(10);
  const Duration after = death.store == proto::STORE_LOG ? kToBeSaid : kToEnd;
  const auto& growths = job.oom_kills().growths();
  const auto growth = std::find_if(growths.begin(), growths.end(), [&](const auto& each) {
    return each.begin <= t + kToEnd && t <= each.end + after;
  });
  Evidence evidence;
  evidence.kind = EvidenceKind::kHostOom;
  evidence.store = proto::STORE_PROCESS;
  if (growth != growths.end()) {
    evidence.observed = growth->kills;
    evidence.begin = growth->begin;
    evidence.end = growth->end;
  } else if (death.past && job.hearing().earlier_processes() > 0 && job.oom_kills().earlier() > 0) {
    evidence.observed = job.oom_kills().earlier();
    evidence.values.Set(FieldId::kKnown, "earlier");
    evidence.begin = evidence.end = job.begin();
  } else {
    return;
  }
  f.oom_count_evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
