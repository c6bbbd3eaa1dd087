// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/report_culprit.h"

#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/model/subs.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::Evidence;
using features::EvidenceRef;
using features::JobFeatures;
using features::kNoEvidence;
using features::ReportFeatures;
using logs::IncidentKind;

bool Intersect(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&b](int32_t rank) { return std::binary_search(b.begin(), b.end(), rank); });
}

// Another store than NCCL's own word says that nothing moves.
bool OtherStoreAgrees(const JobFeatures& f, const Finding& finding) {
  return std::any_of(finding.shows.begin(), finding.shows.end(), [&f](EvidenceRef ref) {
    const Evidence* evidence = f.At(ref);
    return evidence != nullptr && evidence->store != proto::STORE_NCCL;
  });
}

void Raise(proto::Tier tier, Finding& finding) {
  const auto rank = [](proto::Tier t) {
    return t == proto::TIER_P ? 3 : t == proto::TIER_C ? 2 : t == proto::TIER_S ? 1 : 0;
  };
  if (rank(tier) > rank(finding.tier)) finding.tier = tier;
}

}  // namespace

void AddReportedCulprit(const JobFeatures& f, Finding& finding) {
  const ReportFeatures::Accused& flight = f.reports.flight;
  const ReportFeatures::Accused& ras = f.reports.ras;
  if (flight.ranks.empty() && ras.ranks.empty()) {
    Show(f.reports.ras_silent_evidence, finding);
    return;
  }
  Show(flight.evidence, finding);
  Show(ras.evidence, finding);
  if (!flight.ranks.empty() && !ras.ranks.empty() && !Intersect(flight.ranks, ras.ranks)) {
    finding.contradiction *= 0.5;
    return;
  }
  const ReportFeatures::Accused& accused = flight.ranks.empty() ? ras : flight;
  finding.ranks = accused.ranks;
  finding.root.push_back(accused.evidence);
  std::erase(finding.open, Question::kHangCulprit);
  // The collectives of all ranks have been seen, so the cap for not seeing them is lifted.
  finding.cap = std::max(finding.cap, cap::kInferred);
  if (OtherStoreAgrees(f, finding)) Raise(proto::TIER_C, finding);
}

void AddPortFaults(const JobFeatures& f, Finding& finding) {
  const bool fabric =
      finding.sub == subs::kIb || finding.sub == subs::kEfa || finding.sub == subs::kPath;
  if (!fabric || f.reports.port_evidence == kNoEvidence) return;
  Show(f.reports.port_evidence, finding);
  if (!f.reports.link_fell) return;
  finding.cap = std::max(finding.cap, cap::kInferred);
  Raise(proto::TIER_C, finding);
}

Finding ReportedDisorder(const JobFeatures& f) {
  const ReportFeatures::Disorder& disorder = f.reports.disorder;
  if (disorder.sub.empty()) return {};
  const Cause* primary = f.Primary();
  Finding finding;
  if (primary != nullptr) {
    if (primary->incident().kind != IncidentKind::kCollectiveTimeout) return {};
    finding = FromPrimary(f);
    Raise(proto::TIER_C, finding);
  } else {
    constexpr int64_t kProgressForSilence = 3;
    const bool hangs = f.running && f.timed && f.progress >= kProgressForSilence && !f.train_end &&
                       f.silence_seconds >= HangTimeout(f);
    if (!hangs) return {};
    finding.matched = true;
    finding.tier = proto::TIER_C;
    finding.shows = {f.silence_evidence};
    finding.onset = f.now - Seconds(f.silence_seconds);
  }
  finding.sub = disorder.sub;
  Show(disorder.evidence, finding);
  finding.root = {disorder.evidence};
  finding.ranks = disorder.ranks;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "collective";
  finding.symptom = "hang";
  finding.open.push_back(Question::kFixSemantics);
  Show(f.last_progress_evidence, finding);
  return finding;
}

}  // namespace rankscope::families
