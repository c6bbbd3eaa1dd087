// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B2, X3, X5 and X21 as far as text decides them: hardware errors that the CUDA runtime or the
// kernel names, faults of the program's own kernels, broken transports, failing storage.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/node_fault.h"
#include "detectors/families/report_culprit.h"
#include "detectors/families/rows.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families {
namespace {
using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

bool IsHardware(const logs::Incident& incident) {
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(incident);
  return owner == features::GpuErrorOwner::kHardware || owner == features::GpuErrorOwner::kDriver;
}

// cudaErrorUnknown comes from the driver; a program's own faults have names.
bool IsUnknownDriverError(const JobFeatures& f) {
  bool unknown = false;
  for (const Cause& cause : f.causes) {
    const features::GpuErrorOwner owner = features::OwnerOfGpuError(cause.incident());
    if (owner != features::GpuErrorOwner::kNone && owner != features::GpuErrorOwner::kUndecided)
      return false;
    const std::vector<KeyValue>& fields = cause.incident().fields;
    unknown = unknown || (cause.incident().kind == IncidentKind::kCudaError &&
                          std::any_of(fields.begin(), fields.end(), [](const KeyValue& field) {
                            return field.key == "error" && field.value == "unknown";
                          }));
  }
  return unknown;
}

bool IsGpuError(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kXid;
}

// A disk that is busy, or a file server that fails over, comes back within two minutes.
constexpr double kFileHangSeconds = 120;

bool IsStorage(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kStorage;
}

// GPUs of one node that cannot reach each other: no fault of a kernel and none of a card.
bool IsPeerAccess(const logs::Incident& incident) {
  constexpr std::string_view kTexts[] = {"peer access is not supported", "NVLink SHARP",
                                         "transport/nvls.cc", "peer mapping resources exhausted"};
  return std::any_of(std::begin(kTexts), std::end(kTexts), [&](std::string_view text) {
    return incident.message.find(text) != std::string::npos ||
           incident.line.find(text) != std::string::npos;
  });
}

// NCCL found no interface to speak through, while the store was there to tell it so.
bool IsBootstrap(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kRendezvous && incident.shape == "nccl_bootstrap" &&
         incident.sub == "bind";
}

// Why a family whose text is there is not the answer: `nothing` where it is not there.
RuledOut NotTheEnd(const JobFeatures& f, bool (*mine)(const logs::Incident&),
                   std::string_view nothing) {
  for (const Cause& cause : f.causes) {
    if (!mine(cause.incident())) continue;
    if (cause.role == Cause::Role::kRecovered)
      return Excluded("the run went on after it", {cause.evidence, f.last_progress_evidence});
    return Excluded("another event explains the end", {cause.evidence});
  }
  return NoSuchText(f, nothing);
}

}  // namespace

Finding EvaluateB2(const JobFeatures& f) {
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
  finding.sub = unknown ? "driver" : primary->incident().kind == IncidentKind::kXid ? "xid" : "ecc";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "gpu";
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
  // Software may be all of it; only the same card under another job would tell.
  if (features::OwnerOfGpuError(primary->incident()) == features::GpuErrorOwner::kDriver)
    finding.cap = 0.7;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}
RuledOut RuleOutB2(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (!IsHardware(cause.incident())) continue;
    if (cause.denied) {
      return Excluded(
          "the job's own text alone says so: the log of the node's kernel was read all along and "
          "has no error of a card of the job",
          {cause.evidence});
    }
    if (cause.role == Cause::Role::kRecovered)
      return Excluded("the run went on after it", {cause.evidence, f.last_progress_evidence});
    return Excluded("an earlier event explains the end", {cause.evidence});
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
    return Excluded("no card counted an uncorrected error under the run",
                    {f.gpu.gpus.front().activity_evidence});
  }
  return NotDecidable(proto::STORE_GPU);
}

Finding EvaluateX3(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(primary->incident());
  if (owner != features::GpuErrorOwner::kProgram && owner != features::GpuErrorOwner::kUndecided)
    return {};
  if (IsUnknownDriverError(f) || IsPeerAccess(primary->incident())) return {};
  Finding finding = FromPrimary(f);
  finding.sub = primary->incident().kind == IncidentKind::kXid ? "xid" : "cuda_error";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "gpu_kernel";
  finding.cap = 0.55;  // a failing card makes the same faults, and then on one GPU only
  if (owner == features::GpuErrorOwner::kUndecided) finding.tier = proto::TIER_W;
  finding.open.push_back(Question::kHardwareOrSoftware);
  return finding;
}
RuledOut RuleOutX3(const JobFeatures& f) {
  return NotTheEnd(f, IsGpuError, "no CUDA error");
}

Finding EvaluateX5(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const logs::Incident& incident = primary->incident();
  const bool peer_access = IsPeerAccess(incident);
  // A group that trained, and cannot connect again.
  const bool again = incident.kind == IncidentKind::kRendezvous && f.progress > 0;
  const bool bootstrap = again || IsBootstrap(incident);
  if (incident.kind != IncidentKind::kPeerLost && !peer_access && !bootstrap) return {};
  if (incident.sub == "init" && f.progress == 0 && !peer_access) return {};  // C1: it never formed
  Finding finding = FromPrimary(f);
  finding.sub = "path";
  if (incident.sub == "ib") finding.sub = "ib";
  if (incident.sub == "efa") finding.sub = "efa";
  if (peer_access) finding.sub = "nvlink_peer";
  if (bootstrap) finding.sub = "bootstrap";
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "network";
  // A peer's death looks the same from here; a missing interface does not.
  if (incident.kind == IncidentKind::kPeerLost || again) finding.cap = 0.55;
  HoldToItsWord(f, finding);
  AddPortFaults(f, finding);
  Show(f.last_progress_evidence, finding);
  finding.open.push_back(Question::kHangTrigger);
  return finding;
}
RuledOut RuleOutX5(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded("one rank has no peers");
  if (const Cause* cause = FindCause(f, IncidentKind::kPeerLost)) {
    if (f.exit_known && f.exit_code == 0)
      return Excluded("the command exited with 0", {cause->evidence, f.exit_evidence});
    return Excluded("the broken connection follows the death of a peer", {cause->evidence});
  }
  return NoSuchText(f, "no transport error");
}

Finding EvaluateX21(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  Finding finding;
  if (primary != nullptr) {
    if (primary->incident().kind != IncidentKind::kStorage) return {};
    finding = FromPrimary(f);
    finding.sub = "full";
    if (primary->incident().sub == "hang") finding.sub = "hang";
    for (const KeyValue& field : primary->incident().fields) {
      if (field.key == "errno" && field.value == "EIO") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "EROFS") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "ESTALE") finding.sub = "hang";
    }
    if (primary->candidate->store == proto::STORE_KERNEL) {
      finding.tier = proto::TIER_P;
      finding.values = {
          {"message", f.storage.name + " could not be written (" +
                          std::string(f.At(primary->evidence)->values.Text(FieldId::kErrno)) +
                          ")"}};
    }
    // The text says that writing failed; the kernel says of what.
    if (primary->candidate->store != proto::STORE_KERNEL && !f.storage.failure.empty())
      finding.sub = f.storage.failure;
    // That a disk is full is the program's own error; that one fails accuses it.
    if (f.storage.failure.empty() && finding.sub != "full") HoldToItsWord(f, finding);
    Show(f.storage.failure_evidence, finding);
  } else if (f.running && f.storage.hang_seconds >= kFileHangSeconds) {
    finding.matched = true;
    finding.sub = "hang";
    finding.tier = proto::TIER_S;
    finding.symptom = "hang";
    finding.onset = f.now - Seconds(f.storage.hang_seconds);
    finding.ranks = f.At(f.storage.hang_evidence)->ranks;
    Show(f.storage.hang_evidence, finding);
    finding.root = finding.shows;
    Show(f.silence_evidence, finding);
    finding.values = {{"message", Number(f.storage.hang_seconds) + " s in one call"}};
  } else if (const features::NodeFault* const server = HangingFileServer(f, kFileHangSeconds)) {
    finding.matched = true;
    finding.sub = "hang";
    finding.tier = proto::TIER_S;
    finding.symptom = "hang";
    finding.onset = server->first;
    Show(server->evidence, finding);
    finding.root = finding.shows;
    for (const features::NodeFault& fault : f.faults) {
      if (fault.type == "hung_task" && fault.own) Show(fault.evidence, finding);
    }
    for (const features::RankWait& rank : f.waits.ranks) {
      if (rank.main == WaitClass::kNetworkFile) Show(rank.evidence, finding);
    }
    Show(f.silence_evidence, finding);
    finding.values = {{"message", "the file server " + server->device + " is silent"}};
  } else {
    // A save that takes longer than any budget for saves.
    if (!f.running || !f.timed || f.phase != proto::PHASE_SAVE || f.progress < 3 ||
        f.phase_seconds < HangTimeout(f))
      return {};
    finding.matched = true;
    finding.sub = "save_stall";
    finding.tier = proto::TIER_W;
    finding.symptom = "hang";
    finding.onset = f.now - Seconds(f.phase_seconds);
    Show(f.leave.save, finding);
    finding.root = finding.shows;
    Show(f.silence_evidence, finding);
    Show(f.alive_evidence, finding);
    finding.values = {{"message", Number(f.phase_seconds) + " s in one save"}};
  }
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "storage";
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  return finding;
}
RuledOut RuleOutX21(const JobFeatures& f) {
  return NotTheEnd(f, IsStorage, "no storage error");
}

}  // namespace rankscope::families
