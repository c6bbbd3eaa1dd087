// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/phase_machine.h"

#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

using logs::MarkerKind;

constexpr Timestamp Second(int64_t second) {
  return {second * 1'000'000'000};
}

TEST(PhaseMachine, TheUsualLife) {
  PhaseMachine phase;
  EXPECT_EQ(phase.phase(), proto::PHASE_INIT);
  phase.OnMarker(MarkerKind::kRendezvousBegin, Second(1));
  EXPECT_EQ(phase.phase(), proto::PHASE_RENDEZVOUS);
  EXPECT_EQ(phase.since(), Second(1));
  phase.OnMarker(MarkerKind::kRendezvousEnd, Second(2));
  EXPECT_EQ(phase.phase(), proto::PHASE_LOAD);
  phase.OnMarker(MarkerKind::kTrainBegin, Second(3));
  EXPECT_EQ(phase.phase(), proto::PHASE_FIRST_STEP);
  phase.OnProgress(Second(4));
  EXPECT_EQ(phase.phase(), proto::PHASE_TRAIN);
  phase.OnMarker(MarkerKind::kSaveBegin, Second(5));
  EXPECT_EQ(phase.phase(), proto::PHASE_SAVE);
  phase.OnMarker(MarkerKind::kSaveEnd, Second(12));
  EXPECT_EQ(phase.phase(), proto::PHASE_TRAIN);
  EXPECT_DOUBLE_EQ(phase.longest_save_seconds(), 7);
  phase.OnMarker(MarkerKind::kEval, Second(13));
  EXPECT_EQ(phase.phase(), proto::PHASE_EVAL);
  phase.OnProgress(Second(33));
  EXPECT_EQ(phase.phase(), proto::PHASE_TRAIN);
  EXPECT_DOUBLE_EQ(phase.longest_eval_seconds(), 20);
  phase.OnMarker(MarkerKind::kTrainEnd, Second(40));
  EXPECT_EQ(phase.phase(), proto::PHASE_TEARDOWN);
}

TEST(PhaseMachine, ProgressMeansTrainingWhateverWasMissed) {
  PhaseMachine phase;
  phase.OnProgress(Second(1));
  EXPECT_EQ(phase.phase(), proto::PHASE_TRAIN);
}

TEST(PhaseMachine, NothingLeadsBackToTheBeginning) {
  PhaseMachine phase;
  phase.OnProgress(Second(1));
  phase.OnMarker(MarkerKind::kRendezvousBegin, Second(2));
  phase.OnMarker(MarkerKind::kLoadBegin, Second(3));
  phase.OnMarker(MarkerKind::kNoCheckpoint, Second(3));
  phase.OnMarker(MarkerKind::kTrainBegin, Second(4));
  EXPECT_EQ(phase.phase(), proto::PHASE_TRAIN);
  EXPECT_EQ(phase.since(), Second(1));
}

TEST(PhaseMachine, ASaveAfterTheEndIsNoTraining) {
  PhaseMachine phase;
  phase.OnProgress(Second(1));
  phase.OnMarker(MarkerKind::kTrainEnd, Second(2));
  phase.OnMarker(MarkerKind::kSaveBegin, Second(3));
  phase.OnMarker(MarkerKind::kSaveEnd, Second(4));
  EXPECT_EQ(phase.phase(), proto::PHASE_TEARDOWN);
}

TEST(PhaseMachine, BannersSayNothingOfThePhase) {
  PhaseMachine phase;
  phase.OnMarker(MarkerKind::kBanner, Second(1));
  phase.OnMarker(MarkerKind::kLauncherBegin, Second(1));
  phase.OnMarker(MarkerKind::kRestart, Second(1));
  EXPECT_EQ(phase.phase(), proto::PHASE_INIT);
}

}  // namespace
}  // namespace rankscope::windows
