// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X16: the GPU fell off the bus.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/node_fault.h"
#include "detectors/families/rows.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families::gpu_lost {

using features::Cause;
using features::JobFeatures;
using features::RunGpu;
using logs::IncidentKind;

namespace {

const RunGpu* LostCard(const JobFeatures& f, const Cause* primary) {
  for (const RunGpu& gpu : f.gpu.gpus) {
    if (!gpu.lost || gpu.lost_since < f.begin) continue;
    if (primary == nullptr || IsAround(gpu.lost_since, primary->incident().t)) return &gpu;
  }
  return nullptr;
}

size_t LostCards(const JobFeatures& f) {
  return static_cast<size_t>(std::count_if(f.gpu.gpus.begin(), f.gpu.gpus.end(),
                                           [](const RunGpu& gpu) { return gpu.lost; }));
}

bool NamesHardware(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kXid ||
         features::OwnerOfGpuError(incident) == features::GpuErrorOwner::kHardware;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* const primary = f.Primary();
  // Whose text or Xid names the fault is B2, which shows the loss beside it.
  if (primary != nullptr && NamesHardware(primary->incident())) return {};
  if (primary == nullptr && !f.running) return {};
  const RunGpu* const lost = LostCard(f, primary);
  if (lost == nullptr) return {};
  if (primary != nullptr && !MayFollowHardware(primary->incident()) &&
      !FollowsALostCard(f, *primary, FromPrimary(f).ranks))
    return {};
  Finding finding;
  if (primary != nullptr) finding = FromPrimary(f);
  finding.matched = true;
  finding.sub = "lost";
  finding.tier = proto::TIER_P;
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu";
  finding.symptom = primary == nullptr ? "hang" : finding.symptom;
  finding.ranks = lost->ranks;
  // The driver, its access to the bus or the board: one card is not to blame.
  if (f.gpu.gpus.size() > 1 && LostCards(f) == f.gpu.gpus.size()) finding.tier = proto::TIER_W;
  finding.shows.insert(finding.shows.begin(), lost->lost_evidence);
  finding.root = {lost->lost_evidence};
  if (const features::EvidenceRef bus = BusErrorBefore(f, lost->bus_id, lost->lost_since);
      bus != features::kNoEvidence) {
    finding.shows.insert(finding.shows.begin(), bus);
    finding.root.insert(finding.root.begin(), bus);
    finding.advice = "link";
  }
  if (primary == nullptr) Show(f.silence_evidence, finding);
  Show(f.last_progress_evidence, finding);
  finding.values = {{FieldId::kGpu, lost->index}};
  finding.onset = lost->lost_since;
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (!f.gpu.known()) return NotDecidable(proto::STORE_GPU);
  if (const RunGpu* const lost = LostCard(f, nullptr))
    return Excluded(Reason::kOtherEvent, {lost->lost_evidence});
  const RunGpu& first = f.gpu.gpus.front();
  if (first.activity_evidence == features::kNoEvidence) return NotDecidable(proto::STORE_GPU);
  return Excluded(Reason::kEveryGpuAnswers, {first.activity_evidence});
}

}  // namespace rankscope::families::gpu_lost
