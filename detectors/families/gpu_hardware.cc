// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B2: Xid, ECC, row remap, link: the GPU itself.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/gpu_error_end.h"
#include "detectors/families/node_fault.h"
#include "detectors/families/rows.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families::gpu_hardware {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

bool IsHardware(const logs::Incident& incident) {
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(incident);
  return owner == features::GpuErrorOwner::kHardware || owner == features::GpuErrorOwner::kDriver;
}

// The run has gone on since the driver spoke: what is to be done can wait for a checkpoint.
bool TrainsOn(const JobFeatures& f, const Cause& xid) {
  const features::Evidence* const last = f.At(f.last_progress_evidence);
  constexpr Duration kGoesOn = Seconds(5);
  return f.running && last != nullptr && last->begin - xid.incident().t >= kGoesOn &&
         f.silence_seconds < HangTimeout(f);
}

// Words about memory that failed, of ranks on this node whose GPU counts such errors, has been
// asked since, and has counted none.
bool CountedNone(const JobFeatures& f, const Cause& said) {
  constexpr Duration kPrompt = Seconds(1);
  const logs::Incident& incident = said.incident();
  if (f.gpu.clean_evidence == features::kNoEvidence || said.candidate->store != proto::STORE_LOG)
    return false;
  if (std::none_of(incident.fields.begin(), incident.fields.end(), [](const KeyValue& field) {
        return field.key == "error" && field.value == "ecc_uncorrectable";
      }))
    return false;
  const std::vector<int32_t>& ranks = said.candidate->ranks;
  return std::all_of(f.gpu.gpus.begin(), f.gpu.gpus.end(),
                     [&](const features::RunGpu& gpu) {
                       return gpu.errors_counted && gpu.errors <= 0 &&
                              gpu.looked - incident.t >= kPrompt;
                     }) &&
         std::all_of(ranks.begin(), ranks.end(), [&f](int32_t rank) {
           return std::any_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [rank](const auto& gpu) {
             return std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) != gpu.ranks.end();
           });
         });
}

// It no longer answers, whatever the program did.
bool IsOffTheBus(const logs::Incident& incident) {
  const std::string_view key = incident.kind == IncidentKind::kXid ? "code" : "error";
  const std::string_view value = incident.kind == IncidentKind::kXid ? "79" : "gpu_lost";
  return std::any_of(incident.fields.begin(), incident.fields.end(), [&](const KeyValue& field) {
    return field.key == key && field.value == value;
  });
}

bool Counts(const Cause& cause) {
  return !cause.denied &&
         (cause.role == Cause::Role::kInitiating || cause.role == Cause::Role::kSupport ||
          cause.role == Cause::Role::kCascade);
}

// The driver names a card and no rank. Who told of its failure: ranks in whose own error a card
// fails, else the only one that met an error of which CUDA does not blame the program.
std::vector<int32_t> RanksThatFeltIt(const JobFeatures& f) {
  std::vector<int32_t> sure, any;
  for (const Cause& cause : f.causes) {
    if (cause.incident().kind != IncidentKind::kCudaError || !Counts(cause)) continue;
    const std::vector<int32_t>& ranks = cause.candidate->ranks;
    if (IsHardware(cause.incident())) sure.insert(sure.end(), ranks.begin(), ranks.end());
    any.insert(any.end(), ranks.begin(), ranks.end());
  }
  for (std::vector<int32_t>* ranks : {&sure, &any}) {
    std::sort(ranks->begin(), ranks->end());
    ranks->erase(std::unique(ranks->begin(), ranks->end()), ranks->end());
  }
  if (!sure.empty()) return sure;
  return any.size() == 1 ? any : std::vector<int32_t>();
}

// The driver's log and the CUDA runtime blame the hardware, each in its own words.
bool TwoBlameIt(const JobFeatures& f) {
  const auto blames = [&f](IncidentKind kind) {
    return std::any_of(f.causes.begin(), f.causes.end(), [kind](const Cause& cause) {
      return cause.incident().kind == kind && Counts(cause) &&
             features::OwnerOfGpuError(cause.incident()) == features::GpuErrorOwner::kHardware;
    });
  };
  return blames(IncidentKind::kXid) && blames(IncidentKind::kCudaError);
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  if (const features::RunGpu* const failed = FailedUnder(f, *primary);
      failed != nullptr && !IsHardware(primary->incident())) {
    Finding finding = FromPrimary(f);
    finding.sub =
        f.At(failed->errors_evidence)->values.Text(FieldId::kWhat) == "ecc" ? "ecc" : "row_remap";
    finding.tier = proto::TIER_P;
    finding.domain = proto::DOMAIN_INFRASTRUCTURE;
    finding.component = "gpu";
    finding.ranks = failed->ranks;
    finding.shows.insert(finding.shows.begin(), failed->errors_evidence);
    finding.root = {failed->errors_evidence};
    finding.values.Set(FieldId::kSure, "yes");
    return finding;
  }
  if (const features::NodeFault* const failed = SwitchFailedUnder(f, *primary);
      failed != nullptr && !IsHardware(primary->incident())) {
    Finding finding = FromPrimary(f);
    finding.sub = "nvswitch";
    finding.tier = proto::TIER_P;
    finding.domain = proto::DOMAIN_INFRASTRUCTURE;
    finding.component = "nvswitch";
    finding.ranks.clear();  // one switch serves all cards
    finding.shows.insert(finding.shows.begin(), failed->evidence);
    finding.root = {failed->evidence};
    Show(f.last_progress_evidence, finding);
    return finding;
  }
  const bool unknown =
      primary->incident().kind == IncidentKind::kCudaError && IsUnknownDriverError(f);
  if ((!IsHardware(primary->incident()) && !unknown) || primary->denied) return {};
  Finding finding = FromPrimary(f);
  const bool off_the_bus = IsOffTheBus(primary->incident());
  finding.sub = unknown                                          ? "driver"
                : primary->incident().kind == IncidentKind::kXid ? "xid"
                : off_the_bus                                    ? "lost"
                                                                 : "ecc";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu";
  if (finding.ranks.empty()) finding.ranks = RanksThatFeltIt(f);
  const bool seen = std::any_of(f.causes.begin(), f.causes.end(), [](const Cause& cause) {
    return cause.incident().kind == IncidentKind::kXid &&
           cause.candidate->store != proto::STORE_LOG;
  });
  const size_t told = finding.shows.size();
  const std::vector<KeyValue>& fields = primary->incident().fields;
  const auto card = std::find_if(fields.begin(), fields.end(),
                                 [](const KeyValue& field) { return field.key == "bus_id"; });
  Show(BusErrorBefore(f, card == fields.end() ? std::string_view() : card->value,
                      primary->incident().t),
       finding);
  for (const features::RunGpu& gpu : f.gpu.gpus) Show(gpu.lost_evidence, finding);
  if (!seen && finding.shows.size() == told) HoldToItsWord(f, finding);
  if (unknown) finding.tier = proto::TIER_W;
  if (features::AsksForRestartAtMost(primary->incident())) finding.advice = "restart_app";
  if (TrainsOn(f, *primary)) finding.values.Set(FieldId::kOutcome, "trains_on");
  if (!seen && CountedNone(f, *primary)) {
    finding.contradiction *= 0.5;
    finding.contradicted_by = "gpu";
    Show(f.gpu.clean_evidence, finding);
    finding.against = {f.gpu.clean_evidence};
  }
  // Software may be all of it; only the same card under another job would tell.
  if (features::OwnerOfGpuError(primary->incident()) == features::GpuErrorOwner::kDriver)
    finding.cap = cap::kUnseenSide;
  // No program takes a GPU off the bus, and none makes its memory fail: of the latter, the driver
  // or the GPU's own counters must tell, too.
  const bool hardware =
      features::OwnerOfGpuError(primary->incident()) == features::GpuErrorOwner::kHardware;
  const bool sure =
      off_the_bus || (hardware && (seen || TwoBlameIt(f) || FailedUnder(f, *primary) != nullptr));
  if (sure) {
    finding.values.Set(FieldId::kSure, "yes");
  } else {
    finding.open.push_back(Question::kHardwareOrSoftware);
  }
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsHardware(cause.incident())) continue;
    if (cause.denied) {
      return Excluded(Reason::kKernelLogHasNone, {cause.evidence});
    }
    if (cause.role == Cause::Role::kRecovered)
      return Excluded(Reason::kWentOn, {cause.evidence, f.last_progress_evidence});
    return Excluded(Reason::kOtherEvent, {cause.evidence}, {{FieldId::kWhat, "earlier"}});
  }
  // Of what a card does not count, or a log that nobody reads, nothing is known.
  const bool clean =
      f.gpu.known() && FindCause(f, IncidentKind::kXid) == nullptr &&
      f.store(proto::STORE_KERNEL) == Availability::kUp &&
      std::all_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [](const features::RunGpu& gpu) {
        return gpu.errors_counted && gpu.errors <= 0 &&
               gpu.activity_evidence != features::kNoEvidence;
      });
  if (clean) {
    return Excluded(Reason::kNoUncorrectedError, {f.gpu.gpus.front().activity_evidence});
  }
  return NotDecidable(proto::STORE_GPU);
}

}  // namespace rankscope::families::gpu_hardware
