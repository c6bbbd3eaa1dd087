// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An engine that is saved and restored in the middle must answer byte for byte like one that was
// never interrupted; one that is given damaged bytes must refuse them or go on.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include "detectors/model/archive.h"
#include "detectors/recording/recording.h"
#include "tests/scenarios/scenario.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

std::string Uninterrupted(const Tape& tape) {
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size());
  return AnswersOf(engine);
}

std::string Interrupted(const Tape& tape, size_t cut) {
  std::string state;
  {
    Engine before({}, "n1");
    Play(tape, before, 0, cut);
    state = before.Save();
  }
  Engine after({}, "n1");
  EXPECT_TRUE(after.Restore(state)) << "own bytes refused after " << cut;
  Play(tape, after, cut, tape.size());
  return AnswersOf(after);
}

std::string Describe(const Tape& tape, size_t cut) {
  std::string text = "cut before observation " + std::to_string(cut);
  if (cut < tape.size()) {
    if (const auto* line = std::get_if<LogLine>(&tape[cut].kind))
      text += ", the line '" + std::string(line->text) + "'";
  }
  return text;
}

void ExpectSameAtCuts(const Tape& tape, size_t cuts, size_t first = 0) {
  const std::string whole = Uninterrupted(tape);
  ASSERT_NE(whole, "");
  const size_t stride = std::max<size_t>(1, tape.size() / cuts);
  for (size_t cut = first % stride; cut <= tape.size(); cut += stride)
    ASSERT_EQ(Interrupted(tape, cut), whole) << Describe(tape, cut);
}

constexpr char kTraceback[] =
    "Traceback (most recent call last):\n"
    "  File \"/home/u/run/train.py\", line 88, in <module>\n"
    "    main()\n"
    "  File \"/home/u/run/train.py\", line 61, in main\n"
    "    batch = collate(rows)\n"
    "KeyError: 'labels'\n"
    "\n"
    "The above exception was the direct cause of the following exception:\n"
    "\n"
    "Traceback (most recent call last):\n"
    "  File \"/home/u/run/train.py\", line 90, in <module>\n"
    "    raise RuntimeError(\"no batch\") from error\n"
    "RuntimeError: no batch\n";

constexpr char kSummary[] =
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: "
    "402) of binary: /usr/bin/python3\n"
    "Traceback (most recent call last):\n"
    "  File \"/usr/lib/python3/dist-packages/torch/distributed/launcher/api.py\", line 246, in "
    "launch_agent\n"
    "    raise ChildFailedError(\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\n"
    "train.py FAILED\n"
    "------------------------------------------------------------\n"
    "Failures:\n"
    "  <NO_OTHER_FAILURES>\n"
    "------------------------------------------------------------\n"
    "Root Cause (first observed failure):\n"
    "[0]:\n"
    "  time      : 2026-03-02_10:14:31\n"
    "  host      : n1\n"
    "  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : -9 (pid: 402)\n"
    "  error_file: <N/A>\n"
    "  traceback : Signal 9 (SIGKILL) received by PID 402\n"
    "============================================================\n";

Tape InsideATraceback() {
  Tape tape;
  tape.Begin(0.1);
  tape.Add(0.2, SourceState{3, "procfs", Availability::kUp, "", 0, Seconds(1)});
  tape.Train(2, 1, 6);
  tape.Say(9.5, kTraceback, 2);
  tape.End(14, Exited(1));
  tape.Closed(14.5);
  tape.Finish(18);
  return tape;
}

// The traceback is complete only by the silence after it; the run goes on.
Tape TracebackThenSilence() {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(2, 1, 6);
  tape.Say(9.5, kTraceback, 2);
  tape.Finish(20);
  return tape;
}

Tape InsideASummary() {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 2, {400, 10});
  tape.Start(0.2, {400, 10}, {1, 1}, {}, {"torchrun", "train.py"});
  tape.StartRank(0.5, {401, 11}, {400, 10}, 0, 2);
  tape.StartRank(0.5, {402, 12}, {400, 10}, 1, 2);
  tape.Train(2, 1, 6);
  tape.Exit(9.2, {402, 12}, 0, false);
  tape.Exit(9.3, {401, 11}, 0, false);
  tape.Say(9.5, kSummary, 2);
  tape.Exit(9.6, {400, 10}, Exited(1));
  tape.End(9.6, Exited(1));
  tape.Closed(9.7);
  tape.Finish(13);
  return tape;
}

// A banner after a death is only suspected to be another attempt; here it becomes one.
Tape SuspectedAttempt() {
  Tape tape;
  tape.Begin(0.1, {"sh", "both.sh"});
  tape.Train(1, 1, 5, 0.5);
  tape.Say(4, kTraceback, 2);
  tape.Say(
      6,
      "[INFO] [logging.py:96:log_dist] [Rank -1] DeepSpeed info: version=0.9.1, git-hash=unknown");
  tape.Train(7, 1, 12, 0.5);
  tape.End(16, 0);
  tape.Closed(16.2);
  tape.Finish(20);
  return tape;
}

Tape RestartedByTheLauncher() {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 2, {400, 10});
  tape.Start(0.2, {400, 10}, {1, 1}, {}, {"torchrun", "train.py"});
  tape.StartRank(0.5, {401, 11}, {400, 10}, 0, 2);
  tape.StartRank(0.5, {402, 12}, {400, 10}, 1, 2);
  tape.Train(1, 1, 5, 0.5);
  tape.Exit(4.1, {402, 12}, Killed(9));
  tape.Exit(4.2, {401, 11}, Killed(15));
  tape.Say(4.3, "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n", 2);
  tape.StartRank(5, {411, 21}, {400, 10}, 0, 2, 1);
  tape.StartRank(5, {412, 22}, {400, 10}, 1, 2, 1);
  tape.Train(5.5, 1, 10, 0.5);
  tape.Exit(11, {411, 21}, 0);
  tape.Exit(11, {412, 22}, 0);
  tape.Exit(11.2, {400, 10}, 0);
  tape.End(11.2, 0);
  tape.Closed(11.3);
  tape.Finish(15);
  return tape;
}

Tape AmendedAfterTheEnd() {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 10, 0.5);
  tape.End(8, Killed(9));
  tape.Closed(9.2);
  tape.State(14.5, "state", "TIMEOUT");
  tape.Finish(18);
  return tape;
}

Tape SilentHang() {
  Tape tape;
  tape.Begin(0.1, {"torchrun", "train.py"}, 2, {400, 10});
  tape.StartRank(0.5, {401, 11}, {400, 10}, 0, 2);
  tape.StartRank(0.5, {402, 12}, {400, 10}, 1, 2);
  tape.Train(1, 1, 8);
  tape.Finish(90);
  return tape;
}

TEST(Restore, AnswersLikeAnUninterruptedEngineAtEveryCut) {
  for (const auto& [name, tape] :
       {std::pair{"inside a traceback", InsideATraceback()},
        std::pair{"a traceback and silence", TracebackThenSilence()},
        std::pair{"inside an elastic summary", InsideASummary()},
        std::pair{"in a suspected attempt", SuspectedAttempt()},
        std::pair{"around a restart", RestartedByTheLauncher()},
        std::pair{"between END and STREAMS_CLOSED, and an amendment", AmendedAfterTheEnd()},
        std::pair{"a silent hang", SilentHang()}}) {
    SCOPED_TRACE(name);
    ExpectSameAtCuts(tape, tape.size());
  }
}

TEST(Restore, TwiceIsAsGoodAsOnce) {
  const Tape tape = RestartedByTheLauncher();
  Engine engine({}, "n1");
  for (size_t i = 0; i < tape.size(); ++i) {
    Play(tape, engine, i, i + 1);
    Engine next({}, "n1");
    ASSERT_TRUE(next.Restore(engine.Save()));
    ASSERT_TRUE(engine.Restore(next.Save()));
  }
  EXPECT_EQ(AnswersOf(engine), Uninterrupted(tape));
}

class ScenarioRestore : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioRestore, AnswersLikeAnUninterruptedEngine) {
  const scenarios::Scenario scenario = scenarios::LoadScenario(GetParam());
  Tape tape(scenario.job_id);
  recording::Decoder decoder;
  std::string bytes;
  recording::Header header;
  header.node = "n1";
  recording::AppendHeader(header, bytes);
  decoder.Feed(
      bytes, [](const recording::Header&) {}, [](const Observation&) {});
  for (const auto& observation : scenario.observations) {
    std::string frame;
    const std::string body = observation.SerializeAsString();
    for (size_t size = body.size(); true; size >>= 7) {
      frame.push_back(static_cast<char>(size < 0x80 ? size : (size & 0x7f) | 0x80));
      if (size < 0x80) break;
    }
    frame += body;
    decoder.Feed(
        frame, [](const recording::Header&) {}, [&](const Observation& o) { tape.Add(o); });
  }
  ASSERT_FALSE(decoder.failed()) << decoder.error();
  const char* const cuts = std::getenv("RANKSCOPE_TEST_CUTS");
  // Of two scenarios of the same length not the same places.
  ExpectSameAtCuts(
      tape, cuts != nullptr ? std::strtoul(cuts, nullptr, 10) : 6,
      std::hash<std::string>{}(scenario.job_id + GetParam().substr(GetParam().rfind('/'))));
}

std::string ScenarioName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(info.param.find("scenarios/") + 10);
  name.resize(name.size() - 5);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioRestore, ::testing::ValuesIn(scenarios::ScenarioPaths()),
                         ScenarioName);

// --- damaged bytes ---

// Whatever Restore says, the engine must go on with the rest of the tape.
void RestoreAndGoOn(const std::string& bytes, const Tape& tape, size_t cut) {
  Engine engine({}, "n1");
  engine.Restore(bytes);
  Play(tape, engine, cut, tape.size());
  AnswersOf(engine);
}

// Sealed anew: past the check, as a build with another layout would be.
std::string Sealed(std::string content) {
  const uint64_t check = ArchiveCheck(content);
  content.append(reinterpret_cast<const char*>(&check), sizeof check);
  return content;
}

TEST(DamagedState, IsRefused) {
  const Tape tape = InsideASummary();
  Engine engine({}, "n1");
  Play(tape, engine, 0, tape.size() / 2);
  const std::string good = engine.Save();
  const std::string answers = AnswersOf(engine);
  std::mt19937 random(7);
  EXPECT_FALSE(engine.Restore(""));
  EXPECT_FALSE(engine.Restore("x"));
  EXPECT_FALSE(engine.Restore(std::string(64, '\0')));
  EXPECT_FALSE(engine.Restore(std::string(64, '\xff')));
  EXPECT_FALSE(engine.Restore(good + "x"));
  for (size_t size = 0; size < good.size(); size += 1 + random() % 97)
    EXPECT_FALSE(engine.Restore(good.substr(0, size))) << size;
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    EXPECT_FALSE(engine.Restore(bad));
  }
  EXPECT_EQ(AnswersOf(engine), answers) << "a refused state must change nothing";
  EXPECT_TRUE(engine.Restore(good));
}

// A whole state that another build sealed: its first number says so.
TEST(DamagedState, OfAnotherBuildIsRefused) {
  Engine engine(Config{}, "n1");
  std::string bytes = engine.Save();
  ASSERT_TRUE(Engine(Config{}, "n1").Restore(bytes));
  bytes[0] = static_cast<char>(bytes[0] + 1);
  bytes.resize(bytes.size() - sizeof(uint64_t));
  const uint64_t check = ArchiveCheck(bytes);
  bytes.append(reinterpret_cast<const char*>(&check), sizeof check);
  EXPECT_FALSE(Engine(Config{}, "n1").Restore(bytes));
}

TEST(DamagedState, ThatPassesTheCheckDoesNoHarm) {
  const google::protobuf::LogSilencer quiet;  // a damaged document is refused, loudly
  for (const Tape& tape : {InsideASummary(), SuspectedAttempt(), AmendedAfterTheEnd()}) {
    const size_t cut = tape.size() * 2 / 3;
    Engine engine({}, "n1");
    Play(tape, engine, 0, cut);
    std::string good = engine.Save();
    good.resize(good.size() - sizeof(uint64_t));
    std::mt19937 random(11);
    for (int i = 0; i < 300; ++i) {
      std::string bad = good;
      for (int flips = static_cast<int>(random() % 3); flips >= 0; --flips)
        bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      RestoreAndGoOn(Sealed(bad), tape, cut);
    }
    // Sizes that no memory holds.
    for (size_t at = 0; at + 8 < good.size(); at += 1 + random() % 61) {
      std::string bad = good;
      const uint64_t huge = random() % 2 == 0 ? UINT64_MAX : uint64_t{1} << 40;
      std::memcpy(bad.data() + at, &huge, sizeof huge);
      RestoreAndGoOn(Sealed(bad), tape, cut);
    }
    for (size_t size = 0; size < good.size(); size += 1 + random() % 211)
      EXPECT_FALSE(Engine({}, "n1").Restore(Sealed(good.substr(0, size)))) << size;
  }
}

// Text is bytes: what a verdict quotes of it must survive being stored.
TEST(Restore, TextThatIsNotUtf8) {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 6, 0.5);
  tape.Say(5,
           "Traceback (most recent call last):\n"
           "  File \"/home/u/caf\xE9/train.py\", line 9, in <module>\n"
           "    main()\n"
           "ValueError: caf\xE9 \xFF is no label\n",
           2);
  tape.End(7, Exited(1));
  tape.Closed(7.5);
  tape.Finish(11);
  ExpectSameAtCuts(tape, tape.size());
}

TEST(Restore, AFreshEngineRestoresEmptiness) {
  Engine engine({}, "n1");
  EXPECT_TRUE(engine.Restore(Engine({}, "n1").Save()));
  EXPECT_TRUE(engine.Jobs().empty());
}

TEST(Restore, WhatTheSourcesOfThisProcessSaidGoesFirst) {
  Tape tape;
  tape.Begin(0.1);
  tape.Add(0.2, SourceState{3, "procfs", Availability::kUp, "", 0, Seconds(1)});
  tape.Finish(2);
  Engine before({}, "n1");
  Play(tape, before, 0, tape.size());
  Engine after({}, "n1");
  Observation denied;
  denied.t = AtSecond(3);
  denied.kind = SourceState{3, "procfs", Availability::kDenied, "no right", 0, Seconds(1)};
  after.Accept(denied);
  ASSERT_TRUE(after.Restore(before.Save()));
  after.Tick(AtSecond(4));
  const proto::Verdict verdict = VerdictOf(after);
  ASSERT_EQ(verdict.data_quality().sources_size(), 1);
  EXPECT_EQ(verdict.data_quality().sources(0).state(), proto::DENIED);
}

}  // namespace
}  // namespace rankscope::engine
