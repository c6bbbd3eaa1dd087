// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/sentences/wording.h"

namespace rankscope::engine {
namespace {

using features::EvidenceKind;

struct KindRow {
  EvidenceKind kind;
  std::string_view signal;
};
constexpr std::array kKinds = {
    KindRow{EvidenceKind::kException, "exception"},
    KindRow{EvidenceKind::kSignalDeath, "termination_signal"},
    KindRow{EvidenceKind::kNonZeroExit, "exit_code"},
    KindRow{EvidenceKind::kCudaOom, "gpu_allocation"},
    KindRow{EvidenceKind::kHostOom, "oom_kill"},
    KindRow{EvidenceKind::kCudaError, "cuda_error"},
    KindRow{EvidenceKind::kXid, "xid"},
    KindRow{EvidenceKind::kCollectiveTimeout, "collective_timeout"},
    KindRow{EvidenceKind::kPeerLost, "peer_connection"},
    KindRow{EvidenceKind::kRendezvous, "rendezvous"},
    KindRow{EvidenceKind::kSchedulerEnd, "scheduler_event"},
    KindRow{EvidenceKind::kTerminated, "termination_request"},
    KindRow{EvidenceKind::kUsageError, "usage_error"},
    KindRow{EvidenceKind::kStorage, "storage_error"},
    KindRow{EvidenceKind::kNonFiniteText, "loss"},
    KindRow{EvidenceKind::kExitStatus, "wait_status"},
    KindRow{EvidenceKind::kExecFailure, "exec"},
    KindRow{EvidenceKind::kWrapperLost, "wrapper"},
    KindRow{EvidenceKind::kLossStart, "loss"},
    KindRow{EvidenceKind::kLossEnd, "loss"},
    KindRow{EvidenceKind::kLossLowest, "loss"},
    KindRow{EvidenceKind::kLossNonFinite, "loss"},
    KindRow{EvidenceKind::kLossSilentNan, "loss"},
    KindRow{EvidenceKind::kLossSpike, "loss"},
    KindRow{EvidenceKind::kGradNorm, "grad_norm"},
    KindRow{EvidenceKind::kLearningRate, "learning_rate"},
    KindRow{EvidenceKind::kSteps, "step"},
    KindRow{EvidenceKind::kTrainBegin, "phase"},
    KindRow{EvidenceKind::kTrainEnd, "phase"},
    KindRow{EvidenceKind::kLastProgress, "progress"},
    KindRow{EvidenceKind::kSilence, "progress_age"},
    KindRow{EvidenceKind::kNoProgress, "progress"},
    KindRow{EvidenceKind::kLinesRead, "log_lines"},
    KindRow{EvidenceKind::kRendezvousBegin, "phase"},
    KindRow{EvidenceKind::kProcessesAlive, "processes_alive"},
    KindRow{EvidenceKind::kNoCheckpoint, "checkpoint"},
    KindRow{EvidenceKind::kStepTime, "step_seconds"},
    KindRow{EvidenceKind::kQuoted, "context"},
    KindRow{EvidenceKind::kLossHighest, "loss"},
    KindRow{EvidenceKind::kGradNormHighest, "grad_norm"},
    KindRow{EvidenceKind::kFirstProgress, "progress"},
    KindRow{EvidenceKind::kLastSave, "checkpoint"},
    KindRow{EvidenceKind::kLastEvaluation, "evaluation"},
    KindRow{EvidenceKind::kResult, "result"},
    KindRow{EvidenceKind::kSaidDone, "phase"},
    KindRow{EvidenceKind::kLastLine, "last_line"},
    KindRow{EvidenceKind::kResumeFlag, "argv"},
    KindRow{EvidenceKind::kCheckpointRead, "checkpoint"},
    KindRow{EvidenceKind::kPartialLoad, "checkpoint"},
    KindRow{EvidenceKind::kWarmUpAgain, "learning_rate"},
    KindRow{EvidenceKind::kEarlierSave, "checkpoint"},
    KindRow{EvidenceKind::kEarlierLoss, "loss"},
    KindRow{EvidenceKind::kLossScale, "loss_scale"},
    KindRow{EvidenceKind::kReward, "reward"},
    KindRow{EvidenceKind::kRewardFlat, "reward"},
    KindRow{EvidenceKind::kKl, "kl"},
    KindRow{EvidenceKind::kCompiling, "compiler"},
    KindRow{EvidenceKind::kRestarts, "restarts"},
    KindRow{EvidenceKind::kConnection, "connection"},
    KindRow{EvidenceKind::kListener, "listener"},
    KindRow{EvidenceKind::kNameLookup, "name_lookup"},
    KindRow{EvidenceKind::kTraffic, "traffic"},
    KindRow{EvidenceKind::kFileError, "file_error"},
    KindRow{EvidenceKind::kFileSpace, "file_space"},
    KindRow{EvidenceKind::kCheckpointFile, "checkpoint_file"},
    KindRow{EvidenceKind::kDataRead, "data_read"},
    KindRow{EvidenceKind::kThreads, "threads"},
    KindRow{EvidenceKind::kThreadStack, "thread_stack"},
    KindRow{EvidenceKind::kStopped, "stopped"},
    KindRow{EvidenceKind::kStarved, "starved"},
    KindRow{EvidenceKind::kStorageWait, "storage_wait"},
    KindRow{EvidenceKind::kLaunches, "kernel_launches"},
    KindRow{EvidenceKind::kCudaCalls, "cuda_calls"},
    KindRow{EvidenceKind::kAllocationFailed, "allocation_failed"},
    KindRow{EvidenceKind::kCollectives, "collectives"},
    KindRow{EvidenceKind::kCommunicator, "communicator"},
    KindRow{EvidenceKind::kRas, "nccl_ras"},
    KindRow{EvidenceKind::kFlightRecorder, "flight_recorder"},
    KindRow{EvidenceKind::kInspector, "nccl_inspector"},
    KindRow{EvidenceKind::kPortCounters, "port_counters"},
    KindRow{EvidenceKind::kGpuActivity, "gpu_engine_active"},
    KindRow{EvidenceKind::kGpuThrottle, "gpu_throttle"},
    KindRow{EvidenceKind::kGpuErrors, "gpu_errors"},
    KindRow{EvidenceKind::kGpuForeign, "gpu_foreign_memory"},
    KindRow{EvidenceKind::kGpuLatent, "gpu_errors"},
    KindRow{EvidenceKind::kGpuWaits, "gpu_busy_wait"},
    KindRow{EvidenceKind::kGpuPeers, "gpu_peers"},
    KindRow{EvidenceKind::kGpuMemory, "gpu_memory_used"},
    KindRow{EvidenceKind::kGpuClean, "gpu_errors"},
    KindRow{EvidenceKind::kGpuWork, "gpu_work"},
    KindRow{EvidenceKind::kTransport, "nccl_transport"},
    KindRow{EvidenceKind::kSaveCadence, "save_cadence"},
    KindRow{EvidenceKind::kKernelFault, "kernel_log"},
    KindRow{EvidenceKind::kGpuLost, "gpu_state"},
    KindRow{EvidenceKind::kGpuCards, "gpu_cards"},
    KindRow{EvidenceKind::kGpuUnused, "gpu_processes"},
    KindRow{EvidenceKind::kGpuOutside, "gpu_processes"},
    KindRow{EvidenceKind::kSchedulerRun, "scheduler_run"},
    KindRow{EvidenceKind::kSchedulerRestarts, "scheduler_restarts"},
    KindRow{EvidenceKind::kTimeLimit, "time_limit"},
    KindRow{EvidenceKind::kNodeState, "node_state"},
    KindRow{EvidenceKind::kBoot, "boot_id"},
    KindRow{EvidenceKind::kLostWork, "lost_work"},
    KindRow{EvidenceKind::kFinalSave, "checkpoint"},
    KindRow{EvidenceKind::kRerun, "rerun"},
    KindRow{EvidenceKind::kParentJob, "earlier_job"},
    KindRow{EvidenceKind::kSuspectNode, "suspect_node"},
    KindRow{EvidenceKind::kSuspended, "suspended"},
};

}  // namespace

std::string_view EvidenceSignal(EvidenceKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.signal;
  }
  return "unknown";
}

}  // namespace rankscope::engine
