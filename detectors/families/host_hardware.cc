// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X15: memory or CPU faults of the host.
#include <algorithm>
#include <csignal>

#include "detectors/families/curve.h"
#include "detectors/families/node_fault.h"
#include "detectors/families/rows.h"
#include "detectors/families/sender.h"

namespace rankscope::families::host_hardware {

using features::Cause;
using features::JobFeatures;
using features::NodeFault;
using logs::IncidentKind;

namespace {

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
    if (fault.type != KernelEventType::kMachineCheck && fault.type != KernelEventType::kMemory)
      continue;
    const double apart = (incident.t - fault.last).seconds();
    if (apart > kTogether || apart < -kTogether) continue;
    // Of a page that cannot be unmapped the kernel kills who has it by SIGKILL; without a victim's
    // name only SIGBUS is telling.
    const bool same = fault.own && (incident.rank < 0 || incident.rank == fault.rank);
    if (same || (bus && fault.severe && !f.storage.shared_memory_full)) return &fault;
  }
  return nullptr;
}

// The kernel's own words about it, in the job's text or in a file that was given.
bool IsToldInText(const Cause& death) {
  return death.incident().shape == "machine_check" && death.candidate->store == proto::STORE_LOG;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* const primary = f.Primary();
  if (primary == nullptr) return {};
  const NodeFault* const fault = MemoryFaultOf(f, *primary);
  const bool poison = IsPoisonSignal(f, *primary);
  const bool told = IsToldInText(*primary);
  if (fault == nullptr && !poison && !told) return {};
  Finding finding = FromPrimary(f);
  finding.sub = "memory";
  if (fault == nullptr && !poison) {
    finding.tier = proto::TIER_S;
    finding.cap = cap::kOneSource;
  } else {
    finding.tier = poison || fault->own ? proto::TIER_P : proto::TIER_C;
  }
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "host_memory";
  if (fault != nullptr) {
    finding.shows.insert(finding.shows.begin(), fault->evidence);
    finding.root = {fault->evidence};
  }
  Show(f.last_progress_evidence, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  const auto hardware = std::find_if(f.faults.begin(), f.faults.end(), [](const NodeFault& fault) {
    return fault.type == KernelEventType::kMachineCheck || fault.type == KernelEventType::kMemory;
  });
  if (hardware != f.faults.end()) {
    return Excluded(Reason::kHardwareSurvived, {hardware->evidence},
                    {{FieldId::kWhat, f.Primary() == nullptr ? "nobody" : "other"}});
  }
  return NotDecidable(proto::STORE_KERNEL);
}

}  // namespace rankscope::families::host_hardware
