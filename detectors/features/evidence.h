// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One observation that a verdict may cite: what was seen, where, against what. Structured; the
// engine alone makes sentences of it (detectors/sentences). Built by features from windows. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/fields.h"
#include "detectors/model/observation.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::features {

enum class EvidenceKind : uint8_t {
  kException,
  kSignalDeath,
  kNonZeroExit,
  kCudaOom,
  kHostOom,
  kCudaError,
  kXid,
  kCollectiveTimeout,
  kPeerLost,
  kRendezvous,
  kSchedulerEnd,
  kTerminated,
  kUsageError,
  kStorage,
  kNonFiniteText,
  kExitStatus,  // of the whole command, from the wrapper or the kernel
  kExecFailure,
  kWrapperLost,
  kLossStart,
  kLossEnd,
  kLossLowest,
  kLossNonFinite,
  kLossSilentNan,
  kLossSpike,
  kGradNorm,
  kLearningRate,
  kSteps,
  kTrainBegin,
  kTrainEnd,
  kLastProgress,
  kSilence,     // seconds without progress against what is usual
  kNoProgress,  // lines read, no training record among them
  kLinesRead,   // lines read, no error among them
  kRendezvousBegin,
  kProcessesAlive,
  kMissingRanks,  // that belong on this node and have no process
  kNoCheckpoint,
  kStepTime,
  kQuoted,  // a line beside the cited one of the same incident
  kLossHighest,
  kGradNormHighest,
  kFirstProgress,
  kLastSave,
  kLastEvaluation,
  kResult,      // a metric in the last lines of the output
  kSaidDone,    // the program's word that it completed
  kSaidFailed,  // its word, at a level of errors, behind its last record
  kLastLine,
  kResumeFlag,      // the command asks to go on from a checkpoint
  kCheckpointRead,  // the program says that it reads or has read one
  kPartialLoad,     // and that some of it was not restored
  kWarmUpAgain,     // the learning rate climbs from nothing, at a step past the beginning
  kEarlierSave,     // what an earlier attempt left behind
  kEarlierLoss,
  kLossScale,
  kReward,
  kRewardClipped,  // completions run into the length limit
  kTarget,         // a throughput, and the one that the run should reach
  kRewardFlat,
  kKl,
  kCompiling,
  kRestarts,
  // Seen from below the text.
  kConnection,
  kListener,
  kNameLookup,
  kTraffic,
  kFileError,
  kFileSpace,
  kCheckpointFile,
  kDataRead,
  kThreads,
  kThreadStack,
  kStopped,
  kStarved,
  kCpuQuota,
  kStorageWait,
  kLaunches,
  kCudaCalls,
  kAllocationFailed,
  kCollectives,
  kCommunicator,
  kRas,
  kFlightRecorder,
  kFlightWaits,  // ranks stand in a collective, by their dumps
  kInspector,
  kPortCounters,
  kGpuActivity,
  kGpuThrottle,
  kGpuErrors,
  kGpuForeign,
  kGpuLatent,
  kGpuWaits,
  kGpuPeers,
  kGpuMemory,
  kGpuClean,
  kGpuWork,
  kTransport,
  kSaveCadence,
  kKernelFault,
  kGpuLost,
  kGpuPowerLimit,  // below what it was, or what its peers have
  kGpuClockLock,
  kGpuLink,        // to its host
  kGpuLinkErrors,  // what its links had to send again
  kGpuCards,
  kGpuUnused,
  kGpuOutside,
  // Of an end from outside.
  kSchedulerRun,       // a run of the job, as the scheduler's record has it
  kSchedulerRestarts,  // how often it was put back
  kTimeLimit,
  kNodeState,
  kStepEnd,    // of a step of the job
  kBoot,       // whether the node was booted under the run
  kLostWork,   // what was trained since the last completed checkpoint
  kFinalSave,  // a save that the end came into
  // Of a run that goes on from another.
  kRerun,        // whom the run follows: a dependency, a restart
  kParentJob,    // what is left of that job
  kSuspectNode,  // a node that was in every run that failed soon
  kSuspended,
  kMemoryPressure,
  kMetricSeries,  // a loss or reward that the output prints in words of its own
  kLossZero,
  kGradNormNotFinite,
};
inline constexpr int kEvidenceKinds = static_cast<int>(EvidenceKind::kGradNormNotFinite) + 1;

struct Evidence {
  EvidenceKind kind{};
  proto::Store store = proto::STORE_LOG;
  std::optional<double> observed;
  std::optional<double> expected;
  std::string_view unit;  // static text
  std::vector<int32_t> ranks;
  FieldValues values;
  int64_t times = 1;
  Timestamp begin, end;
  // The citation: a line of a stream, or a process fact.
  std::string stream;
  int64_t offset = -1;
  std::string line;
  ProcessKey process;
};

// Index into JobFeatures::evidence; -1 = there is none.
using EvidenceRef = int32_t;
inline constexpr EvidenceRef kNoEvidence = -1;

}  // namespace rankscope::features
