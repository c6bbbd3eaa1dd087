// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which event began it all: every rule of causes.cc with a near miss beside it.
#include "tests/unit/features/causes_fixture.h"

namespace rankscope::features {
namespace {

// --- time and class ---

TEST_F(CausesTest, TheEarlierEventWinsWhateverItsClass) {
  Say(10, Exception(0));
  Say(13, Of(IncidentKind::kCudaOom, 1));
  EXPECT_EQ(First(), IncidentKind::kException);
}

TEST_F(CausesTest, AmongSimultaneousEventsTheClassDecides) {
  Say(10, Exception(0));
  Say(11.9, Of(IncidentKind::kCudaOom, 1));
  EXPECT_EQ(First(), IncidentKind::kCudaOom);
}

TEST_F(CausesTest, TextWithoutTimesIsOrderedByClass) {
  f_.timed = false;
  Say(10, Exception(0));
  Say(500, Of(IncidentKind::kCudaOom, 1));
  EXPECT_EQ(First(), IncidentKind::kCudaOom);
}

TEST_F(CausesTest, ClassesInTheirOrder) {
  const std::vector<Incident> rising = {
      Scheduler("node_failure"),
      CodeOf(IncidentKind::kXid, "code", "79"),
      Of(IncidentKind::kHostOom, 1),
      Of(IncidentKind::kCudaOom, 2),
      Of(IncidentKind::kStorage, 3),
      Exception(4),
      Of(IncidentKind::kCollectiveTimeout, 5),
  };
  for (size_t i = 0; i + 1 < rising.size(); ++i) {
    windows::JobWindow job("j", At(0));
    job.OnRecord(rising[i + 1], 1, nullptr, At(1));
    job.OnRecord(rising[i], 1, nullptr, At(1));
    const std::vector<Cause> causes = OrderCauses(job, f_);
    EXPECT_EQ(causes.front().incident().kind, rising[i].kind) << i;
  }
}

TEST_F(CausesTest, DispositionsNeverGoBeforeAFailure) {
  Say(10, Scheduler("time_limit"));
  Say(60, Of(IncidentKind::kCollectiveTimeout, 0));
  EXPECT_EQ(First(), IncidentKind::kCollectiveTimeout);
}

TEST_F(CausesTest, ButAnActOfTheSchedulerGoesByTime) {
  Say(10, Scheduler("preemption"));
  Say(60, Of(IncidentKind::kCollectiveTimeout, 0));
  EXPECT_EQ(First(), IncidentKind::kSchedulerEnd);
}

// --- taken down ---

TEST_F(CausesTest, ATerminationAfterAFailureIsACascade) {
  Say(10, Exception(0));
  Say(10.5, Death(SIGTERM, 1));
  Say(11, Of(IncidentKind::kTerminated, 2));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kCascade);
  EXPECT_EQ(RoleOf(IncidentKind::kTerminated), Role::kCascade);
}

TEST_F(CausesTest, ATerminationOnItsOwnIsTheEvent) {
  Say(10, Death(SIGTERM, 1));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

TEST_F(CausesTest, ATerminationAfterTheSchedulersWordIsACascade) {
  Say(9, Scheduler("time_limit"));
  Say(10, Death(SIGTERM, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kCascade);
  EXPECT_EQ(First(), IncidentKind::kSchedulerEnd);
}

TEST_F(CausesTest, ATerminationAfterSomebodysExitIsACascade) {
  Incident exit = Of(IncidentKind::kNonZeroExit, 0);
  exit.exit_code = 3;
  Say(9, exit);
  Say(10, Death(SIGTERM, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kCascade);
}

TEST_F(CausesTest, ButNotAfterAnExitThatSaysTermination) {
  Incident exit = Of(IncidentKind::kNonZeroExit, 0);
  exit.exit_code = 143;
  Say(9, exit);
  Say(10, Death(SIGTERM, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kInitiating);
}

TEST_F(CausesTest, AKillIsNoTakedown) {
  Say(10, Exception(0));
  Say(9, Death(SIGKILL, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kInitiating);
}

TEST_F(CausesTest, APlainCancelAfterAFailureCleansUp) {
  Say(10, Exception(0));
  Say(11, Scheduler("cancelled"));
  EXPECT_EQ(RoleOf(IncidentKind::kSchedulerEnd), Role::kCascade);
}

TEST_F(CausesTest, APlainCancelAloneIsTheEvent) {
  Say(11, Scheduler("cancelled"));
  EXPECT_EQ(First(), IncidentKind::kSchedulerEnd);
}

// --- abort and terminate ---

TEST_F(CausesTest, AnAbortAfterAnErrorThatWasSaidIsACascade) {
  Say(10, Of(IncidentKind::kCollectiveTimeout, 0));
  Say(10.2, Death(SIGABRT, 0));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kCascade);
}

TEST_F(CausesTest, AnAbortOutOfNowhereIsTheEvent) {
  Say(10.2, Death(SIGABRT, 0));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

TEST_F(CausesTest, ASegmentationFaultIsNoAbort) {
  Say(10, Of(IncidentKind::kCollectiveTimeout, 0));
  Say(10.2, Death(SIGSEGV, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kInitiating);
}

TEST_F(CausesTest, StdTerminateRepeatsTheWatchdog) {
  Incident terminate = Exception(0);
  terminate.shape = "cpp_terminate";
  Say(10, Of(IncidentKind::kCollectiveTimeout, 0));
  Say(10.1, terminate);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kCascade);
  EXPECT_EQ(First(), IncidentKind::kCollectiveTimeout);
}

TEST_F(CausesTest, StdTerminateAloneIsTheEvent) {
  Incident terminate = Exception(0);
  terminate.shape = "cpp_terminate";
  Say(10.1, terminate);
  Say(10.2, Death(SIGABRT, 0));
  EXPECT_EQ(First(), IncidentKind::kException);
}

TEST_F(CausesTest, TheWatchdogsAbortAfterALostPeerIsNoCrashOfItsOwn) {
  Incident terminate = Cascading(Of(IncidentKind::kPeerLost, 3));
  terminate.shape = "cpp_terminate";
  Say(10, terminate);
  Say(10.2, Death(SIGABRT, 3));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kCascade);
}

TEST_F(CausesTest, AnAbortOfAnotherRankIsWhatTheWatchdogSaw) {
  Incident terminate = Cascading(Of(IncidentKind::kPeerLost, 3));
  terminate.shape = "cpp_terminate";
  Say(10, terminate);
  Say(10.2, Death(SIGABRT, 1));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

// --- survivors ---

TEST_F(CausesTest, SurvivorsLoseTheirPeersBecauseSomebodyDied) {
  Say(10, Of(IncidentKind::kPeerLost, 0));
  Say(15, Death(SIGKILL, 1));
  EXPECT_EQ(RoleOf(IncidentKind::kPeerLost), Role::kCascade);
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

TEST_F(CausesTest, ALostPeerThatNothingExplainsIsTheEvent) {
  Say(10, Of(IncidentKind::kPeerLost, 0));
  EXPECT_EQ(First(), IncidentKind::kPeerLost);
}

TEST_F(CausesTest, ATerminatedPeerDoesNotExplainALoss) {
  Say(10, Of(IncidentKind::kPeerLost, 0));
  Say(11, Death(SIGTERM, 1));
  EXPECT_EQ(First(), IncidentKind::kPeerLost);
}

TEST_F(CausesTest, ARendezvousFailsBecauseARankDied) {
  Say(10, Of(IncidentKind::kRendezvous, 0));
  Say(12, Exception(1));
  EXPECT_EQ(RoleOf(IncidentKind::kRendezvous), Role::kCascade);
}

TEST_F(CausesTest, OnlyTheProcessGroupsConsequencesArePromoted) {
  Incident pipe = Cascading(Of(IncidentKind::kPeerLost, 0));
  Say(10, pipe);
  EXPECT_EQ(RoleOf(IncidentKind::kPeerLost), Role::kCascade) << "a broken pipe to a helper";
  Incident nccl = Cascading(Of(IncidentKind::kPeerLost, 0));
  nccl.shape = "nccl_remote_error";
  Say(11, nccl);
  EXPECT_EQ(First(), IncidentKind::kPeerLost);
  f_.exit_known = true;
  f_.exit_code = 0;
  for (const Cause& cause : Order()) EXPECT_NE(cause.role, Role::kInitiating);
}

// --- the launcher's word ---

TEST_F(CausesTest, TheLaunchersWordAloneIsBelieved) {
  Say(10, Wrapped(Death(SIGKILL, 1)));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

TEST_F(CausesTest, TheLaunchersWordBesideAnExceptionIsNot) {
  Say(9, Exception(0));
  Say(10, Wrapped(Death(SIGTERM, 1)));
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kWrapper);
  EXPECT_EQ(First(), IncidentKind::kException);
}

TEST_F(CausesTest, OfTheLaunchersWordsADeathGoesBeforeATakedown) {
  Say(10, Wrapped(Death(SIGTERM, 0)));
  Say(10, Wrapped(Death(SIGKILL, 1)));
  const std::vector<Cause> causes = Order();
  EXPECT_EQ(causes.front().incident().signal, SIGKILL);
  for (const Cause& cause : causes)
    EXPECT_TRUE(cause.role != Role::kInitiating || cause.incident().signal == SIGKILL);
}

TEST_F(CausesTest, IfTakedownsAreAllTheLauncherKnowsTheyAreTheEvent) {
  Say(10, Wrapped(Death(SIGTERM, 0)));
  EXPECT_EQ(First(), IncidentKind::kSignalDeath);
}

// --- survived ---

TEST_F(CausesTest, ThreeRecordsAfterAnErrorShowThatItWasSurvived) {
  Train(1, 5);
  Say(2, Exception(0));
  Train(3, 2);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating) << "two may be in flight";
  Train(4, 1);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered);
}

TEST_F(CausesTest, RecordsThatABufferHeldBackShowNothing) {
  Say(2, Exception(0));
  Train(3, 20);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating);
}

TEST_F(CausesTest, ExitZeroShowsThatItWasSurvived) {
  Say(2, Exception(0));
  Exit(0);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered);
  Exit(1);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating);
}

TEST_F(CausesTest, ExitZeroDoesNotUnsayASignal) {
  Say(2, Death(SIGKILL, 1));
  Exit(0);
  EXPECT_EQ(RoleOf(IncidentKind::kSignalDeath), Role::kInitiating);
}

TEST_F(CausesTest, AnErrorAfterTheEndOfTrainingIsTeardown) {
  EndTraining(5);
  Say(6, Exception(0));
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kTeardown);
  Exit(1);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kInitiating)
      << "the exit status says otherwise";
}

TEST_F(CausesTest, AnErrorBeforeTheEndOfTrainingWasSurvived) {
  Say(4, Exception(0));
  EndTraining(5);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kRecovered);
}

TEST_F(CausesTest, AnErrorBelowATeardownFrameIsTeardown) {
  Incident late = Exception(0);
  late.frame = FrameKind::kTeardown;
  Say(6, late);
  EXPECT_EQ(RoleOf(IncidentKind::kException), Role::kTeardown);
}

// --- by their own words ---

TEST_F(CausesTest, CascadesAndAdviceNeverInitiate) {
  Incident advice = Exception(0);
  advice.role = logs::Role::kAdvice;
  Say(1, advice);
  Say(2, Cascading(Exception(1)));
  const std::vector<Cause> causes = Order();
  ASSERT_EQ(causes.size(), 1u) << "advice is no evidence";
  EXPECT_EQ(causes[0].role, Role::kCascade);
}

TEST_F(CausesTest, XidsThatFollowAProcessesEndNeverInitiate) {
  Say(1, CodeOf(IncidentKind::kXid, "code", "43"));
  EXPECT_EQ(RoleOf(IncidentKind::kXid), Role::kCascade);
}

TEST_F(CausesTest, XidsOfTheProgramDo) {
  Say(1, CodeOf(IncidentKind::kXid, "code", "31"));
  EXPECT_EQ(RoleOf(IncidentKind::kXid), Role::kInitiating);
}

// --- second voices ---

TEST_F(CausesTest, TheSameDeathByAnotherStoreSupports) {
  Say(10, Death(SIGKILL, 1, 402));
  Incident kernel = Death(SIGKILL, 1, 402);
  kernel.shape = "wait_status";
  Say(10.1, kernel);
  const std::vector<Cause> causes = Order();
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].role, Role::kInitiating);
  EXPECT_EQ(causes[1].role, Role::kSupport);
}

TEST_F(CausesTest, TheDeathOfAnotherProcessDoesNot) {
  Say(10, Death(SIGKILL, 1, 402));
  Say(10.1, Death(SIGKILL, 2, 403));
  EXPECT_EQ(Order()[1].role, Role::kInitiating);
}

TEST_F(CausesTest, TheLaunchersExitCodeSupportsAnException) {
  Say(10, Exception(1));
  Incident exit = Wrapped(Of(IncidentKind::kNonZeroExit, 1));
  exit.exit_code = 1;
  Say(11, exit);
  EXPECT_EQ(Order()[1].role, Role::kSupport);
}

TEST_F(CausesTest, OfAnotherRankItDoesNot) {
  Say(10, Exception(1));
  Incident exit = Wrapped(Of(IncidentKind::kNonZeroExit, 2));
  exit.exit_code = 1;
  Say(11, exit);
  EXPECT_EQ(Order()[1].role, Role::kWrapper);
}

TEST_F(CausesTest, NothingSaidNothingOrdered) {
  EXPECT_TRUE(Order().empty());
}

}  // namespace
}  // namespace rankscope::features
