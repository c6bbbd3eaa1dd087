// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Why a family is ruled out, or still open. The words are in sentences/reasons.inc, one row each.
#pragma once

#include <cstdint>

namespace rankscope::families {

enum class Reason : uint8_t {
  kNone,  // the store that would decide says it all

  // Of many families.
  kNoText,
  kNoSuchText,   // `what` is of words.inc, group no_text
  kGoesOn,       // the run
  kExited,       // the command's status
  kOneRank,      // nobody to compare it with, or to wait for
  kOtherEvent,   // ended the run; `what` it then cannot be
  kConsequence,  // `what` follows from something earlier
  kWentOn,       // the run, after `what`
  kOtherFamily,

  // Hangs.
  kTrainingEnded,
  kRecordsCome,
  kCollectivesAdvance,
  kNobodyWaits,
  kGpusCompute,
  kSameOperations,
  kSameCollective,
  kCompilerEnded,
  kTextEndsInCompiler,
  kThreadsRun,
  kGroupFormed,

  // GPUs and hosts.
  kLittleForeignMemory,
  kTooLargeAnyway,
  kKernelLogHasNone,
  kNoUncorrectedError,
  kEveryGpuAnswers,
  kNotThrottled,
  kHardwareSurvived,

  // Slow runs.
  kGpusBusy,
  kRanksFeedGpus,
  kNoHostPause,
  kHostsAlike,
  kGpusAlike,
  kNobodyStarved,
  kLaunchesDoNotBlock,

  // Training.
  kCurveIsWrong,
  kCurveIsNotTheCause,
  kTooEarly,
  kStalls,
  kNoLearningSeen,
  kNoTrainingSeen,
  kNoLoss,
  kLossNeedNotFall,
  kRateRangeTest,
  kFewLosses,
  kLossFell,
  kLossStays,
  kScaleRecovered,
  kNoReward,
  kRewardsDiffer,
  kFewFlatRewards,
  kNoRecord,
  kNoStepCount,
  kManySteps,
  kIncomplete,
  kFewRecords,

  // Ends.
  kTrainingBegan,
  kStartNotKnown,
  kNoStepBefore,
  kPeersStillWait,
  kStopRequest,
  kNoSignalDeath,

  // The scheduler and earlier runs.
  kRecordedState,
  kRestartsAdvance,
  kFewRuns,
  kFewRestarts,
  kResumed,
  kCheckpointRead,
  kNothingLeft,
  kParentDone,
  kParentSavedNothing,
  kParentContinued,
  kParentSaved,
  kResumeUnknown,
  kLast = kResumeUnknown,
};
inline constexpr int kReasons = static_cast<int>(Reason::kLast) + 1;

}  // namespace rankscope::families
