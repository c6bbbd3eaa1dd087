// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text that is about another command, another job or another rank than the one that ended the run.
#include "detectors/features/earlier_text.h"

#include "tests/unit/features/causes_fixture.h"

namespace rankscope::features {
namespace {

TEST_F(CausesTest, AnUncaughtExceptionAfterTheEndOfTrainingEndsTheProgram) {
  EndTraining(5);
  Incident uncaught = Exception(0);
  uncaught.shape = "traceback";
  Say(6, uncaught);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating);
  Incident lost = Of(IncidentKind::kPeerLost, 0);
  lost.shape = "traceback";
  Say(7, lost);
  EXPECT_EQ(RoleOf(IncidentKind::kPeerLost), Role::kTeardown) << "how a process group goes apart";
}

TEST_F(CausesTest, AnExceptionAfterTrainingThatWasCaughtEndsNothing) {
  EndTraining(5);
  Incident caught = Exception(0);
  caught.shape = "traceback";
  Say(6, caught);
  Evidence done;
  done.offset = offset_ + 100;
  f_.evidence.push_back(done);
  f_.leave.done = 0;
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kTeardown)
      << "the program says that it is done";
}

// --- text of other jobs and other programs ---

Incident EndOf(std::string job, std::string sub = "cancelled") {
  Incident incident = Scheduler(std::move(sub));
  incident.message = "JOB " + job;
  incident.fields = {{"job", std::move(job)}};
  return incident;
}

TEST_F(CausesTest, OfJobsThatAppendToOneFileTheLastIsJudged) {
  f_.timed = false;
  Say(1, Exception());
  Say(2, EndOf("71"));
  Say(3, EndOf("72"));
  EXPECT_EQ(First(), IncidentKind::kSchedulerEnd);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered);
}

TEST_F(CausesTest, StepsOfOneJobAreOneJob) {
  f_.timed = false;
  Say(1, Exception());
  Incident step = Scheduler("cancelled");
  step.fields = {{"step", "71.0"}};
  Say(2, step);
  Say(3, EndOf("71"));
  EXPECT_EQ(First(), IncidentKind::kException);
}

TEST_F(CausesTest, WhatIsObservedNamesItsJobItself) {
  Say(1, Exception());
  Say(2, EndOf("71"));
  Say(3, EndOf("72"));
  EXPECT_EQ(First(), IncidentKind::kException);
}

TEST_F(CausesTest, AnEndBeforeTheEndOfTrainingIsAnotherJobs) {
  f_.timed = false;
  Train(1, 2);
  Say(2, EndOf("71"));
  Train(3, 5);
  EndTraining(4);
  EXPECT_EQ(RoleOf(IncidentKind::kSchedulerEnd), Role::kRecovered);
}

TEST_F(CausesTest, ATrainingThatIsToldToStopMayFinishInOrder) {
  f_.timed = false;
  Train(1, 2);
  Say(2, EndOf("71"));
  Say(2, Of(IncidentKind::kTerminated));
  Train(3, 5);
  EndTraining(4);
  EXPECT_EQ(RoleOf(IncidentKind::kSchedulerEnd), Role::kInitiating);
}

Incident ToolError() {
  Incident incident = Exception();
  incident.fields = {{"tool", "conda"}};
  return incident;
}

TEST_F(CausesTest, AToolThatFailedBeforeIsNotWhatEndedTheRun) {
  f_.timed = false;
  Say(1, ToolError());
  Say(2, EndOf("71", "time_limit"));
  EXPECT_EQ(First(), IncidentKind::kSchedulerEnd);
}

TEST_F(CausesTest, AToolThatFailedIsTheCauseOfAnImportThatFails) {
  f_.timed = false;
  Say(1, ToolError());
  EXPECT_EQ(First(), IncidentKind::kException) << "nothing else is known";
  Incident import = Exception();
  import.exception_type = "ModuleNotFoundError";
  import.frame = FrameKind::kImport;
  Say(2, import);
  EXPECT_EQ(Order().front().incident().fields.size(), 1U);
}

// --- one rank among peers ---

TEST_F(CausesTest, PeersThatPrintOnDoNotSaveARankThatEnded) {
  Train(1, 5);
  Say(2, Exception(3));
  Train(3, 5);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered) << "nobody says that it ended";
  Incident end = Wrapped(Of(IncidentKind::kNonZeroExit, 3));
  end.exit_code = 1;
  Say(9, end);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating);
}

TEST_F(CausesTest, AnErrorLongBeforeTheOneThatEndedTheRankWasSurvived) {
  Train(1, 5);
  Say(2, Exception(3));
  Train(3, 5);
  Say(8, Of(IncidentKind::kCudaOom, 3));
  Incident end = Wrapped(Of(IncidentKind::kNonZeroExit, 3));
  end.exit_code = 1;
  Say(9, end);
  EXPECT_EQ(First(), IncidentKind::kCudaOom);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered);
}

TEST_F(CausesTest, ASurvivorsAbortIsNoEvent) {
  Incident end = Wrapped(Of(IncidentKind::kNonZeroExit, 3));
  end.exit_code = 1;
  Say(1, end);
  Say(2, Wrapped(Death(SIGABRT, 5)));
  EXPECT_NE(RoleOf(IncidentKind::kSignalDeath), Role::kInitiating);
}

TEST_F(CausesTest, AnAbortBesideNoOtherEndIsTheEvent) {
  Say(2, Wrapped(Death(SIGABRT, 5)));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

}  // namespace
}  // namespace rankscope::features
