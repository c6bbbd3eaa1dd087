// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X21: storage full, hanging or failing.
#include "detectors/families/curve.h"
#include "detectors/families/gpu_error_end.h"
#include "detectors/families/node_fault.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::storage_fault {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// A disk that is busy, or a file server that fails over, comes back within two minutes.
constexpr double kFileHangSeconds = 120;

bool IsStorage(const logs::Incident& incident) {
  return incident.kind == IncidentKind::kStorage;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  Finding finding;
  if (primary != nullptr) {
    if (primary->incident().kind != IncidentKind::kStorage) return {};
    finding = FromPrimary(f);
    finding.sub = subs::kFull;
    if (primary->incident().sub == subs::kHang) finding.sub = subs::kHang;
    for (const KeyValue& field : primary->incident().fields) {
      if (field.key == "errno" && field.value == "EIO") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "EROFS") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "ENOTCONN") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "ESHUTDOWN") finding.sub = "io_error";
      if (field.key == "errno" && field.value == "ESTALE") finding.sub = subs::kHang;
    }
    if (primary->candidate->store == proto::STORE_KERNEL) {
      finding.tier = proto::TIER_P;
      finding.values = {
          {FieldId::kWhat, "write"},
          {FieldId::kUnwritten, f.storage.name},
          {FieldId::kErrno, std::string(f.At(primary->evidence)->values.Text(FieldId::kErrno))}};
    }
    // The text says that writing failed; the kernel says of what.
    if (primary->candidate->store != proto::STORE_KERNEL && !f.storage.failure.empty())
      finding.sub = f.storage.failure;
    // That a disk is full is the program's own error; that one fails accuses it.
    if (f.storage.failure.empty() && finding.sub != subs::kFull) HoldToItsWord(f, finding);
    Show(f.storage.failure_evidence, finding);
  } else if (f.running && f.storage.hang_seconds >= kFileHangSeconds) {
    finding.matched = true;
    finding.sub = subs::kHang;
    finding.tier = proto::TIER_S;
    finding.symptom = "hang";
    finding.onset = f.now - Seconds(f.storage.hang_seconds);
    finding.ranks = f.At(f.storage.hang_evidence)->ranks;
    Show(f.storage.hang_evidence, finding);
    finding.root = finding.shows;
    Show(f.silence_evidence, finding);
    finding.values = {{FieldId::kWhat, "call"}, {FieldId::kSeconds, f.storage.hang_seconds}};
  } else if (const features::NodeFault* const server = HangingFileServer(f, kFileHangSeconds)) {
    finding.matched = true;
    finding.sub = subs::kHang;
    finding.tier = proto::TIER_S;
    finding.symptom = "hang";
    finding.onset = server->first;
    Show(server->evidence, finding);
    finding.root = finding.shows;
    for (const features::NodeFault& fault : f.faults) {
      if (fault.type == KernelEventType::kHungTask && fault.own) Show(fault.evidence, finding);
    }
    for (const features::RankWait& rank : f.waits.ranks) {
      if (rank.main == WaitClass::kNetworkFile) Show(rank.evidence, finding);
    }
    Show(f.silence_evidence, finding);
    finding.values = {{FieldId::kWhat, "server"}, {FieldId::kDevice, server->device}};
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
    finding.values = {{FieldId::kWhat, "save"}, {FieldId::kSeconds, f.phase_seconds}};
  }
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "storage";
  Show(f.last_progress_evidence, finding);
  Show(f.leave.save, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NotTheEnd(f, IsStorage, "storage");
}

}  // namespace rankscope::families::storage_fault
