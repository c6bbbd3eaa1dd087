// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/node_fault.h"

#include <algorithm>
#include <vector>

#include "detectors/features/gpu_error.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using features::NodeFault;
using logs::IncidentKind;

namespace {

// A program may meet a fault before the kernel's log tells of it, and a fabric's error takes a
// watchdog's ten minutes to end a run.
constexpr double kBefore = 660, kAfter = 60;

}  // namespace

bool IsAround(Timestamp fault, Timestamp incident) {
  const double before = (incident - fault).seconds();
  return before <= kBefore && before >= -kAfter;
}

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

bool FollowsALostCard(const JobFeatures& f, const Cause& cause, const std::vector<int32_t>& ranks) {
  if (cause.incident().kind != IncidentKind::kCudaError || ranks.empty()) return false;
  return std::any_of(f.gpu.gpus.begin(), f.gpu.gpus.end(), [&](const features::RunGpu& gpu) {
    return gpu.lost && gpu.lost_since >= f.begin && IsAround(gpu.lost_since, cause.incident().t) &&
           std::all_of(ranks.begin(), ranks.end(), [&gpu](int32_t rank) {
             return std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) != gpu.ranks.end();
           });
  });
}

const NodeFault* SwitchFailedUnder(const JobFeatures& f, const Cause& cause) {
  if (!MayFollowHardware(cause.incident())) return nullptr;
  for (const NodeFault& fault : f.faults) {
    if (fault.type == KernelEventType::kSxid && fault.severe &&
        IsAround(fault.first, cause.incident().t))
      return &fault;
  }
  return nullptr;
}

const NodeFault* HangingFileServer(const JobFeatures& f, double seconds) {
  if (!f.running || !f.timed || f.silence_seconds < seconds) return nullptr;
  const bool task = std::any_of(f.faults.begin(), f.faults.end(), [](const NodeFault& fault) {
    return fault.type == KernelEventType::kHungTask && fault.own;
  });
  const bool waits =
      std::any_of(f.waits.ranks.begin(), f.waits.ranks.end(), [](const features::RankWait& rank) {
        return rank.main == WaitClass::kNetworkFile ||
               rank.workers_in[static_cast<size_t>(WaitClass::kNetworkFile)] > 0;
      });
  if (!task && !waits) return nullptr;
  for (const NodeFault& fault : f.faults) {
    const bool silent = fault.type == KernelEventType::kNetworkFile && !fault.over;
    if (silent && (f.now - fault.first).seconds() >= seconds) return &fault;
  }
  return nullptr;
}

features::EvidenceRef BusErrorBefore(const JobFeatures& f, std::string_view bus_id, Timestamp t) {
  constexpr double kShortly = 60;
  for (const NodeFault& fault : f.faults) {
    const bool its = fault.device.empty() || fault.device == bus_id;
    const double before = (t - fault.first).seconds();
    if (fault.type == KernelEventType::kPcie && its && fault.severe && before <= kShortly &&
        before >= -kShortly)
      return fault.evidence;
  }
  return features::kNoEvidence;
}

}  // namespace rankscope::families
