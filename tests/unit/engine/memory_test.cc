// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What ailed a job is remembered past its end; how it ended is told beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "detectors/engine/ailments.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

// Two ranks train for a minute, then nothing is printed any more.
Tape Silent(double until) {
  Tape tape;
  tape.Begin(0.1, {"python", "train.py"}, 2);
  tape.Train(1, 1, 60);
  if (until > 61) tape.Add(until, Tick{});
  return tape;
}

proto::Verdict At(const Tape& tape, double second) {
  Engine engine({}, "n1");
  PlayUntil(tape, engine, 0, second);
  return VerdictOf(engine);
}

TEST(Memory, AHangThatIsCancelledWasAHang) {
  Tape tape = Silent(200);
  tape.End(200.5, 15);
  tape.Closed(200.6);
  tape.Finish(210);
  const proto::Verdict live = At(tape, 200);
  ASSERT_EQ(live.triage().symptom(), "hang") << live.code();
  EXPECT_FALSE(live.has_disposition());
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.code(), live.code());
  EXPECT_EQ(end.sub(), live.sub());
  EXPECT_EQ(end.confidence(), live.confidence());
  EXPECT_EQ(end.state(), proto::FINAL);
  EXPECT_FALSE(end.triage().running());
  EXPECT_EQ(end.disposition().kind(), "killed");
  EXPECT_GT(end.shows_size(), live.shows_size()) << "the end is cited, too";
  for (int i = 0; i < end.shows_size(); ++i) EXPECT_EQ(end.shows(i).id(), static_cast<uint32_t>(i));
  // What is said once of a live run is not said twice, and what was true of it only then not at
  // all.
  EXPECT_EQ(end.history_size(), live.history_size());
  EXPECT_EQ(end.data_quality().sources_size(), live.data_quality().sources_size());
  const auto goes_on = [](const proto::Verdict& verdict) {
    return std::count_if(
        verdict.families().begin(), verdict.families().end(),
        [](const proto::FamilyState& family) { return family.by() == "the job is still running"; });
  };
  EXPECT_GT(goes_on(live), 0);
  EXPECT_EQ(goes_on(end), 0);
}

TEST(Memory, TheAdviceOfAnAilmentIsThatForARunThatHasEnded) {
  proto::Verdict hang;
  hang.set_code("C2");
  hang.mutable_resolution()->add_immediate("look at it");
  hang.mutable_resolution()->add_immediate_ended("next time, look at it");
  hang.add_next_tests()->set_command("dmesg");
  hang.add_next_tests()->set_of_running(true);
  engine::Ailment ailment{
      .code = "C2", .seconds = 100, .document = hang.SerializeAsString(), .assertions = {}};
  engine::BuiltVerdict end;
  end.document.set_code("X20");
  const auto advice = [&] {
    return engine::ConcludedVerdict(ailment, end, 0.5).document.resolution().immediate(0);
  };
  EXPECT_EQ(advice(), "next time, look at it");
  EXPECT_EQ(engine::ConcludedVerdict(ailment, end, 0.5).document.next_tests_size(), 1);
  end.document.mutable_triage()->set_running(true);
  EXPECT_EQ(advice(), "look at it");
}

// While it hung nobody had died: of a family that was ruled out so, the end tells.
TEST(Memory, AReasonThatTheEndDisprovesIsNotRepeated) {
  proto::Verdict hang;
  hang.set_code("C2");
  hang.add_families()->set_code("A2");
  hang.mutable_families(0)->set_by("no death by a signal");
  hang.add_families()->set_code("B1");
  hang.mutable_families(1)->set_by("no allocation failure");
  engine::Ailment ailment{
      .code = "C2", .seconds = 100, .document = hang.SerializeAsString(), .assertions = {}};
  using Of = engine::Assertion::Of;
  ailment.assertions = {{Of::kFamily, 0, "!process.ended=signal"},
                        {Of::kFamily, 1, "!process.got=gpu_memory_refused"}};
  engine::BuiltVerdict end;
  end.document.set_code("X20");
  end.document.add_shows()->set_text("rank 0 was terminated by SIGTERM");
  end.document.add_families()->set_code("A2");
  end.document.mutable_families(0)->set_by("a request to stop");
  end.document.mutable_families(0)->add_evidence(0);
  end.document.add_families()->set_code("B1");
  end.document.mutable_families(1)->set_by("no allocation failure, either");
  const auto reasons = [&] {
    const engine::BuiltVerdict built = engine::ConcludedVerdict(ailment, end, 0.5);
    return built.document.families(0).by() + "; " + built.document.families(1).by();
  };
  EXPECT_EQ(reasons(), "no death by a signal; no allocation failure");
  end.assertions = {{Of::kEvidence, 0, "process.ended=signal of rank 0"},
                    {Of::kFamily, 0, "process.got=stop_request"}};
  EXPECT_EQ(reasons(), "a request to stop; no allocation failure") << "only what is untrue changes";
  const engine::BuiltVerdict built = engine::ConcludedVerdict(ailment, end, 0.5);
  ASSERT_EQ(built.document.families(0).evidence_size(), 1);
  EXPECT_EQ(built.document.shows(0).text(), "rank 0 was terminated by SIGTERM") << "it is cited";
  // The reasons that stand assert what they say, and the one that went asserts nothing.
  ASSERT_EQ(built.assertions.size(), 3u);
  EXPECT_EQ(built.assertions[0].fact, "!process.got=gpu_memory_refused");
  EXPECT_EQ(built.assertions[1].fact, "process.ended=signal of rank 0");
  EXPECT_EQ(built.assertions[2].fact, "process.got=stop_request");
}

// Slurm ends one process after the other, for up to KillWait: who is left shows no hang any more.
TEST(Memory, AHangIsNotOverBecauseItsProcessesAreEnded) {
  proto::Verdict hang;
  hang.set_code("C2");
  hang.mutable_triage()->set_symptom("hang");
  proto::Verdict nothing;
  nothing.set_code("U0");
  const auto concluded = [&](double seconds, double still_seconds) {
    Ailments ailments;
    ailments.Stood(hang, 300, 360);
    ailments.Keep(hang, {});
    for (double s = 1; s <= seconds; ++s) ailments.Stood(nothing, 1, still_seconds + s);
    return ailments.Conclude(families::EndKind::kForced) != nullptr;
  };
  EXPECT_TRUE(concluded(35, 360));
  EXPECT_FALSE(concluded(35, -30)) << "it moved after the verdict had fallen";
  EXPECT_FALSE(concluded(90, 360)) << "longer than an end takes";
}

// A straggler is named after five minutes in which it was late, and the run ends two minutes later.
TEST(Memory, ARunWasSlowBeforeItWasKnownToBe) {
  proto::Verdict slow;
  slow.set_code("D3");
  slow.mutable_triage()->set_symptom("slow");
  proto::Verdict well;
  well.set_code("G1");
  const auto concluded = [&](int64_t unnamed_seconds) {
    slow.set_onset_ns(1'000'000'000'000);
    slow.set_detected_ns(slow.onset_ns() + unnamed_seconds * 1'000'000'000);
    Ailments ailments;
    ailments.Stood(well, 800, 0);
    ailments.Stood(slow, 140, 0);
    ailments.Keep(slow, {});
    return ailments.Conclude(families::EndKind::kQuiet) != nullptr;
  };
  EXPECT_TRUE(concluded(300));
  EXPECT_FALSE(concluded(30)) << "for a sixth of its time";
}

// The last records before a good end are as noisy as any others.
TEST(Memory, ACurveThatWasWrongToTheEndStaysWrong) {
  proto::Verdict wrong;
  wrong.set_code("E1");
  wrong.mutable_triage()->set_symptom("wrong_result");
  proto::Verdict well;
  well.set_code("G1");
  const auto concluded = [&](double seconds, double seconds_well_after) {
    Ailments ailments;
    ailments.Stood(well, 600, 0);
    ailments.Stood(wrong, seconds, 0);
    ailments.Keep(wrong, {});
    if (seconds_well_after > 0) ailments.Stood(well, seconds_well_after, 0);
    return ailments.Conclude(families::EndKind::kQuiet) != nullptr;
  };
  EXPECT_TRUE(concluded(1500, 0));
  EXPECT_FALSE(concluded(60, 0)) << "for a tenth of its time";
  EXPECT_FALSE(concluded(1500, 30)) << "it came back";
}

TEST(Memory, TheSameEndOfAHealthyRunIsACancel) {
  Tape tape = Silent(0);
  tape.End(61.5, 15);
  tape.Closed(61.6);
  tape.Finish(70);
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.code(), "X20");
  EXPECT_EQ(end.disposition().kind(), "killed");
}

// It stood still for two minutes, and went on to its end.
TEST(Memory, AHangThatPassedIsNoAnswerForARunThatCompleted) {
  Tape tape = Silent(200);
  tape.Train(201, 61, 160);
  tape.End(302, 0);
  tape.Closed(302.1);
  tape.Finish(310);
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.code(), "G1");
  EXPECT_EQ(end.disposition().kind(), "completed");
  ASSERT_GE(end.history_size(), 2);
  EXPECT_EQ(end.history(end.history_size() - 1).to(), "G1");
}

TEST(Memory, WhatFailsByItselfIsTheAnswerWhateverWasBefore) {
  Tape tape = Silent(200);
  tape.Train(201, 61, 160);
  tape.Say(301,
           "Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n"
           "ValueError: bad batch\n",
           2);
  tape.End(302, 256);
  tape.Closed(302.1);
  tape.Finish(310);
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.code(), "X1");
  EXPECT_EQ(end.disposition().kind(), "failed");
}

TEST(Memory, TheSchedulersRecordNamesTheDisposition) {
  Tape tape = Silent(200);
  tape.End(200.5, 15);
  tape.Closed(200.6);
  tape.State(201, "state", "TIMEOUT");
  tape.Finish(210);
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.triage().symptom(), "hang") << end.code();
  EXPECT_EQ(end.disposition().kind(), "time_limit");
}

TEST(Memory, AHangThatAbortsItselfWasAHang) {
  Tape tape = Silent(200);
  tape.End(200.5, 6);
  tape.Closed(200.6);
  tape.Finish(210);
  const proto::Verdict end = JudgeTape(tape);
  EXPECT_EQ(end.triage().symptom(), "hang") << end.code();
  EXPECT_EQ(end.disposition().kind(), "failed");
}

TEST(Memory, AHealthyRunThatAbortsAborted) {
  Tape tape = Silent(0);
  tape.End(61.5, 6);
  tape.Closed(61.6);
  tape.Finish(70);
  EXPECT_EQ(JudgeTape(tape).code(), "A2");
}

TEST(Memory, OutlivesARestartOfTheEngine) {
  Tape tape = Silent(200);
  tape.End(200.5, 15);
  tape.Closed(200.6);
  tape.Finish(210);
  const std::string whole = VerdictToJson(JudgeTape(tape));
  Engine before({}, "n1");
  const size_t played = PlayUntil(tape, before, 0, 199);
  Engine after({}, "n1");
  ASSERT_TRUE(after.Restore(before.Save()));
  Play(tape, after, played, tape.size());
  EXPECT_EQ(VerdictToJson(VerdictOf(after)), whole);
}

}  // namespace
}  // namespace rankscope::engine
