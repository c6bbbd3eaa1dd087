// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B1: a GPU allocation that does not fit.
#include <algorithm>
#include <cmath>
#include <set>

#include "detectors/families/curve.h"
#include "detectors/families/gpu_memory.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::cuda_oom {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// Whether the card's memory climbed all along the run, not in one jump: what is kept from step to
// step, by the numbers of the card.
bool Leaks(const JobFeatures& f) {
  const features::GpuMemory& m = f.gpu.memory;
  constexpr double kSteps = 50, kZ = 2.58, kRise = 0.1,
                   kOneJump = 0.5;  // z: 1 % of a two-sided test
  constexpr size_t kPoints = 24;
  return m.at >= 0 && f.steps_known && f.steps >= kSteps && m.points >= kPoints && m.rise_z >= kZ &&
         m.rise >= kRise * m.total && m.largest_step <= kOneJump * m.rise;
}

// Whether it stood well below the card's size for long, until this one asked for much more.
bool Jumped(const JobFeatures& f) {
  const features::GpuMemory& m = f.gpu.memory;
  constexpr double kSteps = 50, kFull = 0.9, kFlat = 0.05;
  constexpr size_t kPoints = 24;
  return m.at >= 0 && f.steps_known && f.steps > kSteps && m.points >= kPoints &&
         m.plateau <= kFull * m.total && m.rise <= kFlat * m.total;
}

// What the card's own numbers say beside the allocator's words.
void ShowCard(const JobFeatures& f, Finding& finding) {
  const features::GpuMemory& m = f.gpu.memory;
  if (m.at < 0) return;
  if (finding.sub == subs::kPlan && Leaks(f)) finding.sub = "leak";
  if (finding.sub == subs::kPlan && Jumped(f)) finding.sub = "late_spike";
  Show(m.evidence, finding);
  Show(f.gpu.clean_evidence, finding);
  constexpr double kNearlyFull = 0.85;
  if (finding.tier == proto::TIER_S && m.peak >= kNearlyFull * m.total)
    finding.tier = proto::TIER_C;
}

std::string_view Sub(const logs::Incident& incident) {
  const auto requested = Field(incident, "requested");
  const auto total = Field(incident, "total");
  const auto allocated = Field(incident, "allocated");
  const auto reserved = Field(incident, "reserved");
  if (requested && total && *requested > *total) return "oversize";
  if (requested && allocated && reserved && total) {
    const double unused = *reserved - *allocated;
    if (unused >= *requested || unused >= 0.2 * *total) return "fragmentation";
    return subs::kPlan;
  }
  if (!requested) return "unsized";
  return subs::kPlan;
}

// The card's own refusal beside the allocator's words for it: of a rank that the text names, if
// any.
void ShowRefusal(const JobFeatures& f, Finding& finding) {
  const features::LaunchFeatures& l = f.launches;
  const features::Evidence* refusal = f.At(l.allocation_evidence);
  if (refusal == nullptr) return;
  if (!finding.ranks.empty() &&
      std::find(finding.ranks.begin(), finding.ranks.end(), l.failed_rank) == finding.ranks.end())
    return;
  finding.shows.push_back(l.allocation_evidence);
  if (finding.ranks.empty()) finding.ranks = {l.failed_rank};
  if (finding.tier == proto::TIER_S) finding.tier = proto::TIER_C;
}

// No rank runs out of memory because another did: whoever was refused fails beside the first, by
// the same plan or, at other requests, by a part of it.
void AddRanksThatRanOut(const JobFeatures& f, Finding& finding) {
  if (finding.ranks.empty()) return;
  std::set<int32_t> ranks(finding.ranks.begin(), finding.ranks.end());
  for (const Cause& cause : f.causes) {
    const bool own = cause.role != Cause::Role::kRecovered &&
                     cause.role != Cause::Role::kTeardown &&
                     cause.incident().kind == IncidentKind::kCudaOom;
    if (own) ranks.insert(cause.candidate->ranks.begin(), cause.candidate->ranks.end());
  }
  finding.ranks.assign(ranks.begin(), ranks.end());
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (DiedRefused(f)) {
    if (OthersHeldIt(f)) return {};
    Finding finding = Refused(f);
    finding.sub = subs::kRefused;
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "gpu_memory";
    finding.open.push_back(Question::kMemoryKnob);
    return finding;
  }
  if (primary == nullptr || primary->incident().kind != IncidentKind::kCudaOom) return {};
  if (IsCrowdedOut(f, primary->incident())) return {};
  Finding finding = FromPrimary(f);
  finding.sub = Sub(primary->incident());
  if (const auto total = Field(primary->incident(), "total"))
    finding.values.Set(FieldId::kTotal, *total);
  // PyTorch knows the better setting since 2.1, whose text counts otherwise, and refuses to start
  // with one that it does not know.
  const bool old = primary->incident().message.find(" total capacity; ") != std::string::npos;
  finding.values.Set(FieldId::kSetting, old ? "max_split_size_mb:128" : "expandable_segments:True");
  AddRanksThatRanOut(f, finding);
  ShowRefusal(f, finding);
  ShowCard(f, finding);
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "gpu_memory";
  finding.open.push_back(Question::kMemoryKnob);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (const Cause* oom = FindCause(f, IncidentKind::kCudaOom)) {
    if (oom->role == Cause::Role::kRecovered) {
      return Excluded(Reason::kWentOn, {oom->evidence, f.last_progress_evidence},
                      {{FieldId::kWhat, "allocation"}});
    }
    return Excluded(Reason::kConsequence, {oom->evidence}, {{FieldId::kWhat, "allocation"}});
  }
  if (DiedRefused(f)) {
    return Excluded(Reason::kConsequence, {f.launches.allocation_evidence},
                    {{FieldId::kWhat, "allocation"}});
  }
  if (f.launches.allocation_failures > 0 && f.launches.launches_since_failure > 0) {
    return Excluded(Reason::kWentOn, {f.launches.allocation_evidence},
                    {{FieldId::kFailed, f.launches.allocation_failures}});
  }
  return NoSuchText(f, "allocation");
}

}  // namespace rankscope::families::cuda_oom
