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
    finding.contradicted_by = "reports";
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

namespace {

// It went on after the dumps were written, or came to its end, or has not been silent for as long
// as a step or an evaluation may take: ranks wait for one that evaluates, too.
bool WentOn(const JobFeatures& f) {
  if (f.train_end || (f.exit_known && f.exit_code == 0)) return true;
  const Evidence* standing = f.At(f.reports.standing_evidence);
  const Evidence* progress = f.At(f.last_progress_evidence);
  if (standing == nullptr) return false;
  if (progress != nullptr && progress->begin > standing->begin) return true;
  if (!f.running || !f.timed) return false;
  const double since = (f.now - standing->begin).seconds();
  if (f.progress > 0 && (f.silence_seconds < since || f.silence_seconds < HangTimeout(f)))
    return true;
  return !f.collectives.ranks.empty() && f.collectives.seconds_since_advance < since;
}

}  // namespace

Finding ReportedStandstill(const JobFeatures& f) {
  const ReportFeatures& reports = f.reports;
  if (reports.standing.empty() || WentOn(f)) return {};
  // Operations of a moment: somebody asked for the dumps of a run that goes on, or copied them. Of
  // dumps that are all there is, the one who is awaited in them is worth a suspicion.
  const bool suspicion = !reports.stands && f.lines == 0 && !reports.flight.ranks.empty();
  if (!reports.stands && !suspicion) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = reports.flight.ranks.empty() ? subs::kStalled : subs::kAbsentRank;
  finding.tier = proto::TIER_S;
  finding.domain = proto::DOMAIN_UNKNOWN;
  finding.component = "collective";
  finding.symptom = "hang";
  finding.shows = finding.root = {reports.standing_evidence};
  finding.onset = f.now;
  if (reports.stands_seconds > 0) finding.onset = f.now - Seconds(reports.stands_seconds);
  if (suspicion) {
    finding.tier = proto::TIER_W;
    finding.cap = cap::kEvenOdds;
  }
  // Dumps that do not tell since when they stand may be of a run that went on.
  if (reports.stands_seconds < 0) finding.cap = cap::kOneSource;
  finding.open = {Question::kHangCulprit, Question::kHangTrigger};
  Show(f.last_progress_evidence, finding);
  AddReportedCulprit(f, finding);
  if (suspicion) finding.cap = cap::kEvenOdds;
  return finding;
}

Finding ReportedDisorder(const JobFeatures& f) {
  const ReportFeatures::Disorder& disorder = f.reports.disorder;
  if (disorder.sub.empty()) return {};
  const Cause* primary = f.Primary();
  // Whoever ended a run that stood ended it for that.
  if (primary != nullptr && f.reports.stands && IsDisposition(primary->event)) primary = nullptr;
  Finding finding;
  if (primary != nullptr) {
    if (primary->incident().kind != IncidentKind::kCollectiveTimeout) return {};
    finding = FromPrimary(f);
    Raise(proto::TIER_C, finding);
  } else {
    constexpr int64_t kProgressForSilence = 3;
    const bool hangs = f.running && f.timed && f.progress >= kProgressForSilence && !f.train_end &&
                       f.silence_seconds >= HangTimeout(f);
    // Of dumps that are all there is: ranks that call different operations at one place will not
    // meet, however short they have stood there.
    const bool stands = f.reports.stands || (f.lines == 0 && !f.reports.standing.empty());
    if (!hangs && (!stands || WentOn(f))) return {};
    finding.matched = true;
    finding.tier = hangs ? proto::TIER_C : proto::TIER_S;
    finding.shows = {hangs ? f.silence_evidence : f.reports.standing_evidence};
    finding.onset = hangs ? f.now - Seconds(f.silence_seconds) : f.now;
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
