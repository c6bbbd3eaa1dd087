// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a node asks, and how often: with programs in the place of Slurm's, which note each call.

#include "exporter/slurm/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "exporter/slurm/comment_queue.h"
#include "exporter/slurm/controller.h"
#include "tests/support/loopback_service.h"
#include "tests/unit/slurm/slurm_commands.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr char kRunning[] =
    "echo 'JobId=7 JobName=a UserId=ada(1000) JobState=RUNNING Reason=None Dependency=afterany:6 "
    "Restarts=1 ExitCode=0:0 TimeLimit=01:00:00 SubmitTime=1795444481 StartTime=1795444482 "
    "EndTime=Unknown Partition=gpu NodeList=n[1-2] WorkDir=/home/ada'";
constexpr char kAccounts[] =
    "echo 'JobIDRaw|JobID|State|ExitCode|Submit|Start|End' | rows\n"
    "echo '7|7|PREEMPTED|0:15|1795444481|1795444482|1795444490' | rows";

TEST_F(SlurmCommands, OneCallWhenAJobBegins) {
  Install("scontrol", kRunning);
  Install("sacct", "exit 1");
  questions_->Ask({"7", false});
  questions_->Ask({"7", false});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 2.5);
  EXPECT_EQ(Calls(), "scontrol --local show job -o 7\n");
  EXPECT_EQ(facts_.Record().state, "RUNNING");
  EXPECT_EQ(facts_.Record().dependency, "afterany:6");
  EXPECT_EQ(facts_.Record().restarts, 1);
  EXPECT_EQ(facts_.Record().time_limit_seconds, 3600);
  EXPECT_EQ(facts_.Record().origin, "scontrol");
}

TEST_F(SlurmCommands, ACommentSaysWhomToTell) {
  std::string comment = kRunning;
  comment.replace(comment.find("WorkDir"), 0, "Comment=x;rankscope:notify=chat,a@example.org ");
  Install("scontrol", comment);
  std::vector<std::pair<std::string, std::string>> wishes;
  NodeAgent agent(Programs(), "", questions_, Quick(), {}, [&](const auto& job, std::string wish) {
    wishes.emplace_back(job, std::move(wish));
  });
  questions_->Ask({"7", false});
  Run(agent, 1.5);
  const std::pair<std::string, std::string> told{"7", "chat,a@example.org"};
  EXPECT_THAT(wishes, testing::ElementsAre(told));
  EXPECT_EQ(facts_.records.size(), 1u);
  // After a restart: nothing else is told again.
  questions_->Ask({"7", false, {}, false, true});
  Run(agent, 1.5);
  EXPECT_THAT(wishes, testing::ElementsAre(told, told));
  EXPECT_EQ(facts_.records.size(), 1u);
  EXPECT_EQ(CallsOf("scontrol"), 2u);
}

TEST_F(SlurmCommands, ACommentThatSaysNothingTellsNobody) {
  Install("scontrol", kRunning);
  NodeAgent agent(Programs(), "", questions_, Quick(), {},
                  [](const auto&, const std::string& wish) { FAIL() << wish; });
  questions_->Ask({"7", false});
  Run(agent, 1.5);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
}

TEST_F(SlurmCommands, AnEndIsAccountingsToTell) {
  Install("scontrol", kRunning);
  Install("sacct", kAccounts);
  questions_->Ask({"7", true});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 2.5);
  EXPECT_EQ(CallsOf("scontrol"), 0u);
  EXPECT_EQ(CallsOf("sacct"), 1u);
  EXPECT_EQ(facts_.Record().state, "PREEMPTED");
  EXPECT_EQ(facts_.Record().exit, "0:15");
  EXPECT_EQ(facts_.Record().wall_ns, 1795444490'000'000'000);
}

// What was put back may be held, which the controller says, and may be cancelled before it runs.
TEST_F(SlurmCommands, AJobThatWaitsAgainIsAskedAboutTwiceMore) {
  Install("scontrol",
          "echo 'JobId=7 JobName=a JobState=PENDING Reason=job_requeued_in_held_state Restarts=1 "
          "ExitCode=0:0 SubmitTime=1795444491 StartTime=Unknown EndTime=Unknown Partition=gpu "
          "NodeList= WorkDir=/home/ada'");
  Install("sacct",
          "echo 'JobIDRaw|JobID|State|ExitCode|Submit|Start|End' | rows\n"
          "echo '7|7|REQUEUED|0:15|1795444481|1795444482|1795444490' | rows\n"
          "echo '7|7|PENDING|0:0|1795444491|Unknown|Unknown' | rows");
  questions_->Ask({"7", true});
  NodeAgent::Patience patience = Quick();
  patience.give_up = Seconds(3);
  NodeAgent agent(Programs(), "", questions_, patience);
  Run(agent, 8);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
  EXPECT_EQ(CallsOf("sacct"), 2u);
  const bool held =
      std::any_of(facts_.records.begin(), facts_.records.end(), [](const SchedulerRecord& record) {
        return record.state == "PENDING" && record.reason == "job_requeued_in_held_state";
      });
  EXPECT_TRUE(held);
}

TEST_F(SlurmCommands, WithoutAccountingTheControllerIsAskedOnce) {
  Install("scontrol",
          "echo 'JobId=7 JobName=a JobState=TIMEOUT Reason=TimeLimit Restarts=0 "
          "ExitCode=0:15 SubmitTime=1795444481 StartTime=1795444482 "
          "EndTime=1795444490 Partition=gpu NodeList=n1 WorkDir=/home/ada'");
  Install("sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1");
  questions_->Ask({"7", true});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 4);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
  EXPECT_EQ(CallsOf("sacct"), 1u);
  EXPECT_EQ(facts_.Record().state, "TIMEOUT");
}

TEST_F(SlurmCommands, AccountingThatIsBehindIsAskedAgainAndTheControllerOnceAtMost) {
  Install("scontrol", kRunning);
  Install("sacct",
          "echo 'JobIDRaw|JobID|State|ExitCode|Submit|Start|End' | rows\n"
          "echo '7|7|RUNNING|0:0|1795444481|1795444482|Unknown' | rows");
  questions_->Ask({"7", true});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 6);
  EXPECT_EQ(CallsOf("sacct"), 3u);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
}

TEST_F(SlurmCommands, AControllerThatDoesNotAnswerIsToldAndNotAskedAgain) {
  Install("scontrol", "sleep 100");
  questions_->Ask({"7", false});
  NodeAgent::Patience patience = Quick();
  patience.call = Milliseconds(300);
  NodeAgent agent(Programs(), "", questions_, patience);
  Run(agent, 3.5);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
  ASSERT_FALSE(facts_.states.empty());
  EXPECT_EQ(facts_.states.back().state, Availability::kDown);
  EXPECT_NE(facts_.states.back().reason.find("no answer in time"), std::string::npos);
  EXPECT_EQ(agent.lost(), 1);
}

constexpr char kNobodyThere[] =
    "echo 'scontrol: s_p_parse_file: file \"/etc/slurm/gres.conf\" is empty' >&2\n"
    "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2\n"
    "exit 1";

TEST_F(SlurmCommands, AControllerThatIsBegunAnewIsAskedWhenItIsThere) {
  Install("scontrol", "if mkdir " + folder_.path() + "/once 2>/dev/null; then " + kNobodyThere +
                          "\nfi\n" + kRunning);
  questions_->Ask({"7", false});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 3.5);
  EXPECT_EQ(CallsOf("scontrol"), 2u);
  EXPECT_EQ(facts_.Record().state, "RUNNING");
  ASSERT_EQ(facts_.states.size(), 3u);
  EXPECT_EQ(facts_.states[1].state, Availability::kDown);
  EXPECT_EQ(facts_.states[1].reason,
            "scontrol show job of one: slurm_load_jobs error: Unable to contact slurm controller "
            "(connect failure); check with `scontrol ping`");
  EXPECT_EQ(facts_.states[2].state, Availability::kUp);
  EXPECT_EQ(agent.lost(), 0);
}

TEST_F(SlurmCommands, AControllerThatStaysAwayIsAskedForAWhile) {
  Install("scontrol", kNobodyThere);
  questions_->Ask({"7", false});
  NodeAgent::Patience patience = Quick();
  patience.give_up = Milliseconds(1500);  // the agent looks once a second
  NodeAgent agent(Programs(), "", questions_, patience);
  Run(agent, 5);
  EXPECT_GE(CallsOf("scontrol"), 2u);
  EXPECT_LE(CallsOf("scontrol"), 3u);
  EXPECT_EQ(facts_.states.back().state, Availability::kDown);
  EXPECT_EQ(agent.lost(), 1);
}

TEST_F(SlurmCommands, AnAnswerOfAccountingIsNoneOfTheController) {
  Install("scontrol", kNobodyThere);
  Install("sacct", kAccounts);
  questions_->Ask({"8", false});
  questions_->Ask({"7", true});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 3.5);
  EXPECT_EQ(CallsOf("sacct"), 1u);
  EXPECT_EQ(facts_.Record().state, "PREEMPTED");
  for (size_t i = 1; i < facts_.states.size(); ++i)
    EXPECT_EQ(facts_.states[i].state, Availability::kDown) << i;
}

TEST_F(SlurmCommands, AControllerThatHasForgottenTheJobHasAnswered) {
  Install("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  questions_->Ask({"7", false});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 3.5);
  EXPECT_EQ(CallsOf("scontrol"), 1u);
  EXPECT_EQ(facts_.states.back().state, Availability::kUp);
  EXPECT_EQ(facts_.states.back().reason, "");
  EXPECT_EQ(agent.lost(), 1);
}

constexpr char kLine[] =
    "rs1 job:6 end:1795444490 try:0 code:^f3 node:n1 prog:train.py step:5:200 records:40 saves:1 "
    "ckpt:/s/step_200.pt:91000000:200 .";

std::string Comments(const std::string& comment, const std::string& admin = "") {
  return "echo 'JobIDRaw|JobID|Comment|AdminComment' | rows\necho \"6${s}6${s}" + comment + "${s}" +
         admin + "$s\"";
}

TEST_F(SlurmCommands, WhatIsLeftOfAJobIsInItsComment) {
  Install("scontrol", kRunning);
  for (const auto& [comment, admin] :
       {std::pair{"grid | 7 [rankscope f3 timeout final; " + std::string(kLine) + " more]",
                  std::string("paid by b")},
        std::pair{std::string("Grid 7"), "[rankscope f3 final; " + std::string(kLine) + "]"}}) {
    facts_.facts.clear();
    Install("sacct", Comments(comment, admin));
    questions_->Ask({"7", false, "6"});
    NodeAgent agent(Programs(), "", questions_, Quick());
    Run(agent, 2.2);
    ASSERT_EQ(facts_.facts.size(), 1u);
    EXPECT_EQ(facts_.facts[0].field, "parent_summary");
    EXPECT_EQ(facts_.facts[0].value, "6 " + std::string(kLine));
    EXPECT_EQ(facts_.facts[0].job_id, "7");
    EXPECT_EQ(facts_.facts[0].origin, "accounting");
  }
  EXPECT_EQ(CallsOf("scontrol"), 0u);
  EXPECT_EQ(CallsOf("sacct"), 2u);
}

TEST_F(SlurmCommands, WhereNothingIsLeftThatIsSaidAfterAFewTries) {
  Install("scontrol", kRunning);
  // Another job's line says nothing of this one.
  Install("sacct", Comments("rs1 job:66 step:5:200 ."));
  questions_->Ask({"7", false, "6"});
  NodeAgent::Patience patience = Quick();
  patience.retry = Milliseconds(50);
  patience.give_up = Milliseconds(450);  // as 10 s stand to 90
  NodeAgent agent(Programs(), "", questions_, patience);
  Run(agent, 6);
  ASSERT_EQ(facts_.facts.size(), 1u);
  EXPECT_EQ(facts_.facts[0].value, "6 unknown");
  EXPECT_LE(CallsOf("sacct"), 4u);
  EXPECT_EQ(CallsOf("scontrol"), 0u);
}

TEST_F(SlurmCommands, AParentIsAJobsNumber) {
  Install("scontrol", kRunning);
  Install("sacct", Comments(kLine));
  for (const char* id : {"6;x", "$(x)", "-6", "6_", "_6", "6_x", "6,8", "run-12ab"})
    questions_->Ask({"7", false, id});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 2.2);
  EXPECT_EQ(Calls(), "");
}

TEST_F(SlurmCommands, TheControllersInstanceKeepsWhatIsLeftOfJobsThatEnded) {
  Install("scontrol",
          "test $2 = node && exit 0\necho 'JobId=6 JobName=a JobState=TIMEOUT Reason=TimeLimit "
          "Restarts=0 ExitCode=0:15 SubmitTime=1795444481 StartTime=1795444482 "
          "EndTime=1795444490 Partition=gpu NodeList=n1 WorkDir=/home/ada'");
  Install("sdiag", "true");
  Install("sacct", Comments(kLine));
  std::vector<std::string> kept;
  const auto run = [&](int64_t now) {
    Controller controller(
        Programs(), Seconds(30), folder_.path() + "/events", [now] { return now * 1'000'000'000; },
        [&](const JobSummary& summary) { kept.push_back(JobSummaryToText(summary)); });
    Run(controller, 2);
  };
  const auto comments = [&] { return Calls().find("AdminComment") != std::string::npos; };
  run(1795444500);  // ten seconds after the end: the comment may be on its way
  EXPECT_FALSE(comments());
  run(1795444590);  // begun anew; the events are known from its file
  EXPECT_TRUE(comments());
  EXPECT_EQ(kept, std::vector<std::string>{kLine});
}

TEST(CommentQueue, AsksTwiceAndForgetsWhatWasFound) {
  CommentQueue queue;
  queue.Add("1", 1000);
  queue.Add("2", 1010);
  EXPECT_THAT(queue.TakeDue(1089), testing::IsEmpty());
  EXPECT_THAT(queue.TakeDue(1100), testing::ElementsAre("1", "2"));
  EXPECT_THAT(queue.TakeDue(1101), testing::IsEmpty());
  queue.Done("1");
  EXPECT_THAT(queue.TakeDue(1100 + 510), testing::ElementsAre("2"));
  EXPECT_THAT(queue.TakeDue(99999), testing::IsEmpty());
  for (int i = 0; i < 10000; ++i) queue.Add(std::to_string(i), i);
  EXPECT_EQ(queue.size(), CommentQueue::kMost);
}

TEST_F(SlurmCommands, RunsWithoutSlurmAskNothing) {
  Install("scontrol", kRunning);
  for (const char* id : {"run-1234abcd", "proc-00ff", "7; rm -rf /", "-7", "", "99999999999"})
    questions_->Ask({id, false});
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 2.2);
  EXPECT_EQ(Calls(), "");
}

TEST_F(SlurmCommands, ANodeWithoutSlurmIsNoFault) {
  NodeAgent agent(Programs(), "", questions_, Quick());
  Run(agent, 0.1);
  ASSERT_EQ(facts_.states.size(), 1u);
  EXPECT_EQ(facts_.states[0].state, Availability::kNotApplicable);
}

TEST_F(SlurmCommands, QuestionsAreBounded) {
  for (size_t i = 0; i < 500; ++i) questions_->Ask({std::to_string(i), false});
  const auto taken = questions_->Take();
  EXPECT_EQ(taken.size(), Questions::kMost);
  EXPECT_EQ(taken.back().job_id, "499");
}

TEST_F(SlurmCommands, TheControllersInstanceAsksOneAfterTheOtherAndNoMoreThanTwiceAMinute) {
  Install("scontrol", std::string("test $2 = node && exec echo 'NodeName=n1 Arch=x86_64 "
                                  "CPUAlloc=0 CPUTot=4 CPULoad=0.5 Gres=gpu:2 NodeAddr=127.0.0.1 "
                                  "Version=22.05.8 OS=Linux 6.1 RealMemory=6000 AllocMem=0 "
                                  "State=IDLE Partitions=gpu BootTime=1795442708 "
                                  "SlurmdStartTime=1795444480 CfgTRES=cpu=4 AllocTRES='\n") +
                          kRunning);
  Install("sdiag", "echo 'Server thread count:  3'");
  Controller controller(Programs(), Milliseconds(100), folder_.path() + "/events",
                        [] { return int64_t{1795444500'000'000'000}; });
  Run(controller, 2.5);
  EXPECT_EQ(Calls(), "scontrol --local show job -o\nscontrol show node -o\nsdiag \n");
  const auto report = controller.slurm();
  ASSERT_EQ(report->events->size(), 2u);
  EXPECT_EQ(report->events->back()->kind, "started");
  ASSERT_EQ(report->nodes.size(), 1u);
  EXPECT_EQ(report->nodes[0].state, "up");
  EXPECT_EQ(facts_.states.back().state, Availability::kUp);
}

TEST_F(SlurmCommands, AControllerThatIsDownIsNotAskedForTheRest) {
  Install("scontrol",
          "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect "
          "failure)' >&2; exit 1");
  Install("sdiag", "exit 1");
  Controller controller(Programs(), Seconds(30), "", [] { return int64_t{1}; });
  Run(controller, 1.5);
  EXPECT_EQ(Calls(), "scontrol --local show job -o\n");
  EXPECT_EQ(facts_.states.back().state, Availability::kDown);
  EXPECT_NE(facts_.states.back().reason.find("Unable to contact slurm controller"),
            std::string::npos);
  EXPECT_EQ(controller.library_calls()[0].errors.size(), 1u);
}

// What is in the way of slurmrestd answers with success; and a job that an answer lacks is gone
// only where the answer is all there.
TEST_F(SlurmCommands, APageInPlaceOfAnAnswerEndsNoJob) {
  std::atomic<const char*> body =
      R"({"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "partition": "gpu",
                         "submit_time": 1795444400, "start_time": 1795444410}]})";
  std::atomic<const char*> diag = R"({"statistics": {"jobs_failed": 2}})";
  const LoopbackService rest([&body, &diag](int fd) {
    bool asks_diag = false;
    for (std::string line; line != "\r"; line = LoopbackService::Hear(fd)) {
      if (line == "(end)") return;
      asks_diag |= line.find("/diag") != std::string::npos;
    }
    const std::string text = asks_diag ? diag.load() : body.load();
    LoopbackService::Say(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " +
                                 std::to_string(text.size()) + "\r\n\r\n" + text);
  });
  const std::string url = "http://127.0.0.1:" + std::to_string(rest.port()) + "/slurm/v0.0.42";
  Controller controller(Commands({}, {}, {url, ""}), Seconds(30), "",
                        [] { return 1795444500'000'000'000; });
  Run(controller, 3);
  EXPECT_EQ(facts_.states.back().state, Availability::kUp);
  EXPECT_EQ(facts_.states.back().reason, "");
  diag = "<html>Sign in</html>";
  Run(controller, 3);
  EXPECT_EQ(facts_.states.back().state, Availability::kUp);
  EXPECT_THAT(facts_.states.back().reason,
              testing::HasSubstr("slurmrestd diag: the answer is not JSON, or is truncated"));
  const int asked = rest.connections();
  for (const char* page : {"<html>Sign in</html>", "", "{\"jobs\": [{\"job_id\": 8"}) {
    body = page;
    Run(controller, 2);
    EXPECT_EQ(facts_.states.back().state, Availability::kDown);
    EXPECT_THAT(facts_.states.back().reason,
                testing::HasSubstr("slurmrestd jobs: the answer is not JSON, or is truncated"));
  }
  EXPECT_EQ(rest.connections(), asked + 3);  // nothing else of it, and nobody about the end of 7
}

// The token is in the file, is read anew for each request, and is in no reason.
TEST_F(SlurmCommands, AFileHoldsTheTokenOfRequests) {
  std::string heard;
  const LoopbackService rest([&heard](int fd) {
    for (std::string line; line != "\r" && line != "(end)"; line = LoopbackService::Hear(fd))
      heard += line;
    LoopbackService::Say(fd, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  });
  const std::string url = "http://127.0.0.1:" + std::to_string(rest.port()) + "/slurm/v0.0.42/";
  const std::string file = folder_.path() + "/token";
  const Commands commands({}, {}, {url, file});
  const auto ask = [&commands](Call call) {
    const CommandOutcome outcome = commands.Run(call, "7", Seconds(5));
    EXPECT_NE(outcome.end, CommandOutcome::End::kDone);
    return Complaint(call, outcome, Asked::kRest);
  };
  EXPECT_EQ(ask(Call::kJobs),
            "slurmrestd jobs: slurm.restd_curl_config: " + file + ": No such file or directory");
  std::ofstream(file) << "header = \"X-SLURM-USER-TOKEN: first\"\n";
  EXPECT_EQ(ask(Call::kJobs),
            "slurmrestd jobs: answers with HTTP status 401; check slurm.restd_url");
  EXPECT_THAT(heard, testing::HasSubstr("GET /slurm/v0.0.42/jobs"));
  EXPECT_THAT(heard, testing::HasSubstr("X-SLURM-USER-TOKEN: first"));
  std::ofstream(file) << "header = \"X-SLURM-USER-TOKEN: second\"\n";
  EXPECT_THAT(ask(Call::kAccounting), testing::Not(testing::HasSubstr("second")));
  EXPECT_THAT(heard, testing::HasSubstr("GET /slurmdb/v0.0.42/job/7"));
  EXPECT_THAT(heard, testing::HasSubstr("X-SLURM-USER-TOKEN: second"));
  std::ofstream(file) << "locaton = third\n";
  EXPECT_THAT(ask(Call::kJobs), testing::AllOf(testing::HasSubstr("line 1: 'locaton'"),
                                               testing::Not(testing::HasSubstr("third"))));
}

// A look each time that it is begun.
TEST_F(SlurmCommands, WhatAccountingDidNotAnswerItIsAskedAgain) {
  const std::string nodes = "test $2 = node && exit 0\n";
  Install("scontrol", nodes + kRunning);
  Install("sdiag", "true");
  Install("sacct", "echo 'sacct: error: Problem talking to the database' >&2; exit 1");
  Controller controller(Programs(), Seconds(30), "", [] { return 1795444500'000'000'000; });
  const auto kinds = [&] {
    std::string told;
    for (const auto& event : *controller.slurm()->events) told += event->kind + " ";
    return told;
  };
  Run(controller, 1);
  EXPECT_EQ(CallsOf("sacct"), 0u);
  Install("scontrol", nodes + "echo 'No jobs in the system'");
  Run(controller, 1);
  EXPECT_EQ(CallsOf("sacct"), 1u);
  EXPECT_EQ(facts_.states.back().state, Availability::kUp);
  EXPECT_THAT(facts_.states.back().reason,
              testing::StartsWith("sacct: sacct: error: Problem talking to the database; "));
  Run(controller, 1);
  EXPECT_EQ(CallsOf("sacct"), 2u);
  Run(controller, 1);  // less and less often
  EXPECT_EQ(CallsOf("sacct"), 2u);
  Install("sacct", kAccounts);
  Run(controller, 1);
  EXPECT_EQ(CallsOf("sacct"), 3u);
  EXPECT_EQ(kinds(), "submitted started preempted ");
  EXPECT_EQ(facts_.states.back().reason, "");
  for (int look = 0; look < 3; ++look) Run(controller, 1);
  EXPECT_EQ(CallsOf("sacct"), 4u) << "once more, for what the controller had kept back";
  EXPECT_EQ(kinds(), "submitted started preempted ");
}

TEST_F(SlurmCommands, SecretsOfACommandLineAreMasked) {
  Install("scontrol",
          "test $2 = node && exit 0\necho 'JobId=7 JobName=a JobState=RUNNING "
          "Reason=None Restarts=0 ExitCode=0:0 SubmitTime=1795444481 "
          "StartTime=1795444482 EndTime=Unknown Partition=gpu NodeList=n1 "
          "WorkDir=/home/ada/hf_abcdefghijklmnopqrstuvwxyz0123456789'");
  Install("sdiag", "true");
  Controller controller(Programs(), Seconds(30), "", [] { return 1795444500'000'000'000; });
  Run(controller, 2);
  for (const auto& event : *controller.slurm()->events) {
    for (const KeyValue& fact : event->facts)
      EXPECT_EQ(fact.value.find("hf_abcdefghijklmnop"), std::string::npos) << fact.value;
  }
  EXPECT_FALSE(controller.slurm()->events->empty());
}

}  // namespace
}  // namespace rankscope::exporter::slurm
