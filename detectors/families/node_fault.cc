// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X15 and X16: memory or processors of the host that fail, cards that are gone; and what the
// kernel's log adds to B2 and X21.
#include "detectors/families/node_fault.h"

#include <algorithm>
#include <csignal>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"
#include "detectors/features/gpu_error.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using features::NodeFault;
using features::RunGpu;
using logs::IncidentKind;

// A program may meet a fault before the kernel's log tells of it, and a fabric's error takes a
// watchdog's ten minutes to end a run.
constexpr double kBefore = 660, kAfter = 60;

bool IsAround(Timestamp fault, Timestamp incident) {
  const double before = (incident - fault).seconds();
  return before <= kBefore && before >= -kAfter;
}

// What a card or a fabric that fails looks like from inside.
bool MayFollowHardware(const logs::Incident& incident) {
  if (incident.kind == IncidentKind::kCollectiveTimeout ||
      incident.kind == IncidentKind::kPeerLost) {
    return true;
  }
  if (incident.kind != IncidentKind::kCudaError) return false;
  const features::GpuErrorOwner owner = features::OwnerOfGpuError(incident);
  return owner != features::GpuErrorOwner::kProgram &&
         owner != features::GpuErrorOwner::kEnvironment;
}

// signal(7): the kernel sends SIGBUS with these codes, and nobody else can, for a page whose
// memory has failed; 4 where the process has touched it, 5 ahead of that.
bool IsPoisonSignal(const JobFeatures& f, const Cause& death) {
  const Cause* const sent = FindSender(f, death);
  if (sent == nullptr || death.incident().signal != SIGBUS) return false;
  const std::string_view code = FieldOf(*sent, "si_code");
  return code == "4" || code == "5";
}

// The error of the host's memory or processor that ended this process.
const NodeFault* MemoryFaultOf(const JobFeatures& f, const Cause& death) {
  constexpr double kTogether = 10;
  const logs::Incident& incident = death.incident();
  const bool bus = incident.signal == SIGBUS;
  if (incident.kind != IncidentKind::kSignalDeath || (!bus && incident.signal != SIGKILL))
    return nullptr;
  for (const NodeFault& fault : f.faults) {
    if (fault.type != "machine_check" && fault.type != "memory") continue;
    const double apart = (incident.t - fault.last).seconds();
    if (apart > kTogether || apart < -kTogether) continue;
    // Of a page that cannot be unmapped the kernel kills who has it by SIGKILL; without a victim's
    // name only SIGBUS is telling.
    const bool same = fault.own && (incident.rank < 0 || incident.rank == fault.rank);
    if (same || (bus && fault.severe && !f.storage.shared_memory_full)) return &fault;
  }
  return nullptr;
}

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

const NodeFault* SwitchFailedUnder(const JobFeatures& f, const Cause& cause) {
  if (!MayFollowHardware(cause.incident())) return nullptr;
  for (const NodeFault& fault : f.faults) {
    if (fault.type == "sxid" && fault.severe && IsAround(fault.first, cause.incident().t))
      return &fault;
  }
  return nullptr;
}

const NodeFault* HangingFileServer(const JobFeatures& f, double seconds) {
  if (!f.running || !f.timed || f.silence_seconds < seconds) return nullptr;
  const bool task = std::any_of(f.faults.begin(), f.faults.end(), [](const NodeFault& fault) {
    return fault.type == "hung_task" && fault.own;
  });
  const bool waits =
      std::any_of(f.waits.ranks.begin(), f.waits.ranks.end(), [](const features::RankWait& rank) {
        return rank.main == WaitClass::kNetworkFile ||
               rank.workers_in[static_cast<size_t>(WaitClass::kNetworkFile)] > 0;
      });
  if (!task && !waits) return nullptr;
  for (const NodeFault& fault : f.faults) {
    const bool silent = fault.type == "network_file" && !fault.over;
    if (silent && (f.now - fault.first).seconds() >= seconds) return &fault;
  }
  return nullptr;
}

features::EvidenceRef BusErrorBefore(const JobFeatures& f, std::string_view bus_id, Timestamp t) {
  constexpr double kShortly = 60;
  for (const NodeFault& fault : f.faults) {
    const bool its = fault.device.empty() || fault.device == bus_id;
    const double before = (t - fault.first).seconds();
    if (fault.type == "pcie" && its && fault.severe && before <= kShortly && before >= -kShortly)
      return fault.evidence;
  }
  return features::kNoEvidence;
}

Finding EvaluateX15(const JobFeatures& f) {
  const Cause* const primary = f.Primary();
  if (primary == nullptr) return {};
  const NodeFault* const fault = MemoryFaultOf(f, *primary);
  const bool poison = IsPoisonSignal(f, *primary);
  if (fault == nullptr && !poison) return {};
  Finding finding = FromPrimary(f);
  finding.sub = "memory";
  finding.tier = poison || fault->own ? proto::TIER_P : proto::TIER_C;
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "host_memory";
  if (fault != nullptr) {
    finding.shows.insert(finding.shows.begin(), fault->evidence);
    finding.root = {fault->evidence};
  }
  Show(f.last_progress_evidence, finding);
  return finding;
}

RuledOut RuleOutX15(const JobFeatures& f) {
  const auto hardware = std::find_if(f.faults.begin(), f.faults.end(), [](const NodeFault& fault) {
    return fault.type == "machine_check" || fault.type == "memory";
  });
  if (hardware != f.faults.end()) {
    return Excluded(
        f.Primary() == nullptr ? "no process of the run ended by it" : "the run did not end by it",
        {hardware->evidence});
  }
  return NotDecidable(proto::STORE_KERNEL);
}

Finding EvaluateX16(const JobFeatures& f) {
  const Cause* const primary = f.Primary();
  // Whose text or Xid names the fault is B2, which shows the loss beside it.
  if (primary != nullptr &&
      (NamesHardware(primary->incident()) || !MayFollowHardware(primary->incident()))) {
    return {};
  }
  if (primary == nullptr && !f.running) return {};
  const RunGpu* const lost = LostCard(f, primary);
  if (lost == nullptr) return {};
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
  finding.values = {{"gpu", std::to_string(lost->index)}};
  finding.onset = lost->lost_since;
  return finding;
}

RuledOut RuleOutX16(const JobFeatures& f) {
  if (!f.gpu.known()) return NotDecidable(proto::STORE_GPU);
  if (const RunGpu* const lost = LostCard(f, nullptr))
    return Excluded("another event explains the end", {lost->lost_evidence});
  const RunGpu& first = f.gpu.gpus.front();
  if (first.activity_evidence == features::kNoEvidence) return NotDecidable(proto::STORE_GPU);
  return Excluded("every card of the run answers", {first.activity_evidence});
}

}  // namespace rankscope::families
