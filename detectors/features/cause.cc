// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/cause.h"

#include <csignal>

#include "detectors/features/gpu_error.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using logs::Incident;
using logs::IncidentKind;

CauseClass ClassOfGpuError(const Incident& incident) {
  const GpuErrorOwner owner = OwnerOfGpuError(incident);
  const bool hardware = owner == GpuErrorOwner::kHardware || owner == GpuErrorOwner::kDriver;
  return hardware ? CauseClass::kHardware : CauseClass::kGpuError;
}

CauseClass ClassOfSignal(int32_t signal) {
  if (signal == SIGTERM || signal == SIGINT) return CauseClass::kStopRequest;
  return signal == SIGABRT ? CauseClass::kAbort : CauseClass::kSignal;
}

CauseClass ClassOfSchedulerEnd(const Incident& incident) {
  if (incident.sub == subs::kTimeLimit) return CauseClass::kTimeLimit;
  const bool ended = incident.sub == subs::kCancelled || incident.sub == subs::kFailed;
  return ended ? CauseClass::kCancelled : CauseClass::kSchedulerAct;
}

}  // namespace

CauseClass ClassOf(const Incident& incident) {
  switch (incident.kind) {
    case IncidentKind::kSchedulerEnd:
      return ClassOfSchedulerEnd(incident);
    case IncidentKind::kXid:
    case IncidentKind::kCudaError:
      return ClassOfGpuError(incident);
    case IncidentKind::kHostOom:
      return CauseClass::kHostOom;
    case IncidentKind::kSignalDeath:
      return ClassOfSignal(incident.signal);
    case IncidentKind::kCudaOom:
      return CauseClass::kCudaOom;
    case IncidentKind::kStorage:
      return CauseClass::kStorage;
    case IncidentKind::kException:
    case IncidentKind::kUsageError:
      return CauseClass::kException;
    case IncidentKind::kRendezvous:
      return CauseClass::kRendezvous;
    case IncidentKind::kCollectiveTimeout:
      return CauseClass::kCollectiveTimeout;
    case IncidentKind::kPeerLost:
      return CauseClass::kPeerLost;
    case IncidentKind::kTerminated:
      return incident.sub.empty() ? CauseClass::kStopRequest : CauseClass::kReasonToStop;
    case IncidentKind::kNonFiniteLoss:
      return CauseClass::kNonFiniteLoss;
    case IncidentKind::kNonZeroExit:
      return CauseClass::kNonZeroExit;
  }
  return CauseClass::kNonZeroExit;
}

}  // namespace rankscope::features
