// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of a job's verdict.
#include <algorithm>

#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

// What the verdict says of a family; null: nothing yet.
const proto::FamilyState* StateOf(const proto::Verdict& verdict, std::string_view code) {
  const auto row =
      std::find_if(verdict.families().begin(), verdict.families().end(),
                   [&](const proto::FamilyState& family) { return family.code() == code; });
  return row == verdict.families().end() ? nullptr : &*row;
}

bool IsRuledOut(const proto::FamilyState* state) {
  return state != nullptr && state->state() == proto::FamilyState::RULED_OUT;
}

struct Scored {
  std::string_view family;
  bool named = false;
  double confidence = 0;
};

// The family that the verdict names, and, of a live job, those that some evidence speaks for.
std::vector<Scored> ScoredFamilies(const proto::Verdict& verdict, bool live) {
  std::vector<Scored> scored;
  for (const families::FamilyName& name : families::FamilyNames()) {
    if (name.code == verdict.code()) {
      scored.push_back({name.family, true, verdict.confidence()});
      continue;
    }
    const proto::FamilyState* const state = live ? StateOf(verdict, name.code) : nullptr;
    if (state == nullptr || IsRuledOut(state) || !(state->score() > 0)) continue;
    scored.push_back({name.family, false, std::min(state->score(), 1.0)});
  }
  return scored;
}

}  // namespace

void SnapshotBuilder::Impl::AddVerdictInfo(const JobStatus& job) {
  constexpr MetricId kInfo = MetricNamed("rankscope_verdict_info");
  const proto::Verdict& verdict = job.verdict;
  if (verdict.code().empty() || !Room(kInfo)) return;
  Put(kInfo,
      jobs[job.job_id].labels.Get(
          kCatalog[kInfo].labels,
          {job.job_id, verdict.family(), verdict.code(), verdict.sub(), Word(verdict.scope()),
           Word(verdict.domain()), verdict.triage().severity(), Word(verdict.phase()),
           Word(verdict.state()), verdict.disposition().kind()}),
      1);
}

void SnapshotBuilder::Impl::AddVerdict(const JobStatus& job) {
  constexpr MetricId kVerdict = MetricNamed("rankscope_verdict");
  constexpr MetricId kConfidence = MetricNamed("rankscope_verdict_confidence_ratio");
  LabelCache& cache = jobs[job.job_id].labels;
  const proto::Verdict& verdict = job.verdict;
  const std::vector<Scored> scored = ScoredFamilies(verdict, !of_ended);
  const bool shown = !of_ended && !scored.empty() && Room(kVerdict, scored.size());
  const bool weighed = !scored.empty() && Room(kConfidence, scored.size());
  for (const Scored& one : scored) {
    const LabelPointer& labels = cache.Get("job_id,family", {job.job_id, one.family});
    if (shown) Put(kVerdict, labels, Flag(one.named));
    if (weighed) Put(kConfidence, labels, one.confidence);
  }
  const LabelPointer& labels = cache.Get("job_id", {job.job_id});
  Add(MetricNamed("rankscope_verdict_changes_total"), labels, Count(job.verdict_changes));
  if (verdict.onset_ns() != 0) {
    Add(MetricNamed("rankscope_verdict_onset_timestamp_seconds"), labels,
        Seconds(verdict.onset_ns()));
  }
  if (verdict.updated_ns() != 0) {
    Add(MetricNamed("rankscope_verdict_updated_timestamp_seconds"), labels,
        Seconds(verdict.updated_ns()));
  }
}

void SnapshotBuilder::Impl::AddRuledOut(const JobStatus& job) {
  constexpr MetricId kRuledOut = MetricNamed("rankscope_verdict_ruled_out");
  const auto families = families::FamilyNames();
  if (!Room(kRuledOut, families.size())) return;
  for (const families::FamilyName& name : families) {
    Put(kRuledOut, jobs[job.job_id].labels.Get("job_id,family", {job.job_id, name.family}),
        Flag(IsRuledOut(StateOf(job.verdict, name.code))));
  }
}

}  // namespace rankscope::metrics
