// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The daemon is away, stopped, or late, and the jobs go on: nothing that it did not observe becomes
// a fault of a job, and what it knew before it still knows.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "detectors/model/wait_class.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::engine {
namespace {

using namespace rankscope::testing;  // NOLINT: the tests' own vocabulary

SampleBatch OfProcess(int pid, std::vector<Sample> samples) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = {pid, 1};
  batch.samples = std::move(samples);
  return batch;
}

SourceState Source(uint32_t id, const char* name, Availability state) {
  return {id, name, state, "", 0, Seconds(1)};
}

constexpr double kAway = 140, kBack = 185, kEnd = 350;
constexpr double kProbesBack = 6;  // the kernel's sources are attached one after the other

bool Watched(double t) {
  return t < kAway || t >= kBack + kProbesBack;
}

// One job of a node, from its first second to the end of the test. What is counted in the kernel
// begins anew with the daemon; what /proc counts does not.
class NodeJob {
 public:
  NodeJob(int number, int ranks)
      : tape("j" + std::to_string(number)), first_pid_(1000 + 100 * number) {
    for (int rank = 0; rank < ranks; ++rank) Begin(0.2, rank, ranks, false);
    for (int rank = 0; rank < ranks; ++rank) Begin(kBack + 0.2, rank, ranks, true);
    ranks_ = ranks;
  }

  int pid(int rank) const { return first_pid_ + rank; }

  void Train(double from, double to, double every) {
    for (double t = from; t < to; t += every) {
      const int step = ++step_;
      if (t >= kAway && t < kBack && !file) continue;
      char text[96];
      std::snprintf(text, sizeof text, "step %d loss %.4f lr 0.01 step_time %.3fs", step,
                    0.5 + 3.0 / (1 + 0.1 * step) + 0.01 * ((step * 7919) % 13 - 6), every);
      tape.Say(t >= kAway && t < kBack ? kBack + 0.3 : t, text);
    }
  }

  // `running`: seconds on a CPU in each second; `runnable`: of its main thread.
  void Threads(int rank, WaitClass main, double running, double runnable, double from = 1,
               double to = kEnd) {
    for (double t = from; t < to; t += 1) {
      cpu_[rank] += running;
      total_[rank] += running;
      queued_[rank] += runnable;
      if (t > kBack && t < kBack + kProbesBack) total_[rank] = queued_[rank] = 0;
      if (t < kAway || t >= kBack)
        tape.Add(t + 0.02, OfProcess(pid(rank), {{SignalId::kCpuSeconds, cpu_[rank]}}));
      if (!Watched(t)) continue;
      tape.Add(t + 0.03,
               OfProcess(pid(rank), {{SignalId::kRunningSeconds, total_[rank]},
                                     {SignalId::kMainRunningSeconds, total_[rank]},
                                     {SignalId::kMainRunnableSeconds, queued_[rank]},
                                     {SignalId::kMainWaitClass, static_cast<double>(main)}}));
    }
  }

  // Two collectives a second up to `until`; then `waits` stands in one and the others never came.
  void Collectives(int rank, double until, bool waits) {
    double entered = 0, asked = 0;
    for (double t = 1; t < kEnd; t += 1) {
      if (t > kBack && t < kBack + kProbesBack) entered = asked = 0;
      if (t < until) entered += 2;
      asked += 10;
      if (!Watched(t)) continue;
      const bool seen = t < kAway;  // begun before the probes were there again: not in their count
      const bool stands = t >= until && waits && seen;
      tape.Add(t + 0.04,
               OfProcess(pid(rank), {{SignalId::kCollectivesEnqueued, entered},
                                     {SignalId::kCollectivesCompleted, entered},
                                     {SignalId::kCollectivesInFlight, stands ? 1.0 : 0.0},
                                     {SignalId::kOldestCollectiveSeconds, stands ? t - until : 0.0},
                                     {SignalId::kEventQueries, asked},
                                     {SignalId::kCommunicators, 1}}));
    }
  }

  Tape tape;
  bool file = false;  // its output can be read again

 private:
  void Begin(double second, int rank, int ranks, bool again) {
    ProcessStart start;
    start.key = {pid(rank), 1};
    start.parent = {1, 1};
    start.comm = "python";
    start.argv = {"python", "train.py"};
    start.env = {{"SLURM_JOB_ID", tape.job_id()},
                 {"RANK", std::to_string(rank)},
                 {"LOCAL_RANK", std::to_string(rank)},
                 {"WORLD_SIZE", std::to_string(ranks)}};
    start.complete = true;
    start.preexisting = again;
    tape.Add(second, std::move(start));
  }

  const int first_pid_;
  int ranks_ = 0;
  int step_ = 0;
  double cpu_[8] = {}, total_[8] = {}, queued_[8] = {};
};

// All observations of a node in the order of their times.
std::vector<const Observation*> Merge(const std::vector<std::unique_ptr<NodeJob>>& jobs,
                                      const Tape& node) {
  std::vector<const Observation*> all;
  const auto take = [&all](const Tape& tape) {
    for (size_t i = 0; i < tape.size(); ++i) all.push_back(&tape[i]);
  };
  take(node);
  for (const auto& job : jobs) take(job->tape);
  std::stable_sort(all.begin(), all.end(),
                   [](const Observation* a, const Observation* b) { return a->t < b->t; });
  return all;
}

struct Answer {
  std::string code, sub, ranks;
  bool operator==(const Answer&) const = default;
};

Answer AnswerOf(const proto::Verdict& verdict) {
  std::string ranks;
  for (const int32_t rank : verdict.ranks()) ranks += std::to_string(rank) + " ";
  return {verdict.code(), verdict.sub(), ranks};
}

// The tape of the node itself: its ticks, what its sources say, and that the daemon was away.
Tape Node(bool away) {
  Tape node("none");
  const std::vector<std::pair<uint32_t, const char*>> sources = {{6, "wait"}, {10, "nccl"}};
  for (const auto& [id, name] : sources) node.Add(0.01, Source(id, name, Availability::kUp));
  for (double t = 1; t < kEnd; ++t) {
    if (t < kAway || t > kBack) node.Add(t + 0.5, Tick{});
  }
  if (away) {
    Epoch epoch{1'750'000'000'000'000'000, 1000, "boot-1"};
    epoch.away_since = AtSecond(kAway - 0.5);
    node.Add(kBack, epoch);
    for (const auto& [id, name] : sources) {
      node.Add(kBack + 0.01, Source(id, name, Availability::kDown));
      node.Add(kBack + kProbesBack, Source(id, name, Availability::kUp));
    }
  }
  return node;
}

std::vector<std::unique_ptr<NodeJob>> FiftyJobs() {
  std::vector<std::unique_ptr<NodeJob>> jobs;
  const auto make = [&jobs](int ranks) -> NodeJob& {
    jobs.push_back(std::make_unique<NodeJob>(static_cast<int>(jobs.size()), ranks));
    return *jobs.back();
  };
  for (int i = 0; i < 10; ++i) {
    {  // trains, and prints to a pipe or to a file
      NodeJob& job = make(2);
      job.file = i % 2 == 0;
      job.Train(3 + 0.05 * i, kEnd, 0.5 + 0.3 * i);
      for (int rank = 0; rank < 2; ++rank) {
        job.Threads(rank, WaitClass::kRunning, 1, 0);
        job.Collectives(rank, kEnd, false);
      }
    }
    {  // hangs in a collective that rank 1 does not enter
      NodeJob& job = make(4);
      job.file = i % 2 == 0;
      job.Train(3, 60, 1);
      for (int rank = 0; rank < 4; ++rank) {
        job.Threads(rank, WaitClass::kRunning, 1, 0);
        job.Collectives(rank, 60, rank != 1);
      }
    }
    {  // stands still: a process by itself that sleeps
      NodeJob& job = make(1);
      job.Train(3, 60, 1);
      job.Threads(0, WaitClass::kRunning, 1, 0, 1, 60);
      job.Threads(0, WaitClass::kSleep, 0, 0, 60, kEnd);
    }
    {  // a rank that is given no CPU
      NodeJob& job = make(2);
      job.file = i % 2 == 0;
      job.Train(3, kEnd, 1);
      job.Threads(0, WaitClass::kFutex, 0.3, 0);
      job.Threads(1, WaitClass::kRunning, 0.5, 0.5);
    }
    {  // several processes of which nothing is counted, and that stopped to print
      NodeJob& job = make(2);
      job.Train(3, 60, 1);
    }
  }
  return jobs;
}

TEST(Gaps, ARestartOverFiftyRunningJobsChangesNoVerdict) {
  const std::vector<std::unique_ptr<NodeJob>> jobs = FiftyJobs();
  const Tape node = Node(true);
  const std::vector<const Observation*> all = Merge(jobs, node);
  auto engine = std::make_unique<Engine>(Config{}, "n1");
  std::map<std::string, Answer> before;
  std::map<std::string, int64_t> changes;
  bool restarted = false;
  for (const Observation* observation : all) {
    if (!restarted && observation->t >= AtSecond(kBack)) {
      restarted = true;
      for (const JobView& view : engine->Jobs()) {
        before[std::string(view.job_id)] = AnswerOf(*view.verdict);
        changes[std::string(view.job_id)] = view.verdict_changes;
      }
      auto next = std::make_unique<Engine>(Config{}, "n1");
      ASSERT_TRUE(next->Restore(engine->Save()));
      engine = std::move(next);
    }
    if (!std::holds_alternative<Tick>(observation->kind)) {
      engine->Accept(*observation);
      continue;
    }
    engine->Tick(observation->t);
    if (!restarted) continue;
    for (const JobView& view : engine->Jobs()) {
      const std::string id(view.job_id);
      ASSERT_EQ(AnswerOf(*view.verdict).code, before[id].code)
          << id << " " << (observation->t - AtSecond(kBack)).seconds()
          << " s after the restart: " << VerdictToJson(*view.verdict);
      ASSERT_EQ(AnswerOf(*view.verdict).ranks, before[id].ranks)
          << id << " " << (observation->t - AtSecond(kBack)).seconds()
          << " s after the restart: " << VerdictToJson(*view.verdict);
    }
  }
  ASSERT_EQ(before.size(), 50u);
  std::map<std::string, int> codes;
  for (const auto& [id, answer] : before) ++codes[answer.code];
  EXPECT_EQ(codes, (std::map<std::string, int>{{"C2", 20}, {"C3", 10}, {"D3", 10}, {"G1", 10}}));
  for (const JobView& view : engine->Jobs()) {
    EXPECT_EQ(view.verdict_changes, changes[std::string(view.job_id)]) << view.job_id;
    EXPECT_FALSE(view.verdict->data_quality().exact()) << view.job_id;
  }
}

// The daemon alone was stopped, or with it the whole node. `cores`: what the ranks used meanwhile.
proto::Verdict AfterTheGap(double cores, double printed, double until, int64_t* changes = nullptr) {
  std::vector<std::unique_ptr<NodeJob>> jobs;
  jobs.push_back(std::make_unique<NodeJob>(1, 2));
  Tape& tape = jobs[0]->tape;
  int step = 0;
  double cpu = 0;
  const auto say = [&](double t, double seconds) {
    char text[96];
    std::snprintf(text, sizeof text, "step %d loss %.4f lr 0.01 step_time %.3fs", step,
                  0.5 + 3.0 / (1 + 0.1 * step), seconds);
    ++step;
    tape.Say(t, text);
  };
  for (double t = 3; t < kAway; ++t) say(t, 1);
  for (double t = 3; t < kEnd; ++t) {
    cpu += t >= kAway && t < kBack ? cores : 1;
    if (t >= kAway && t < kBack) continue;
    for (int rank = 0; rank < 2; ++rank) {
      tape.Add(t + 0.02, OfProcess(jobs[0]->pid(rank), {{SignalId::kCpuSeconds, cpu}}));
      tape.Add(t + 0.03, OfProcess(jobs[0]->pid(rank), {{SignalId::kRunningSeconds, cpu},
                                                        {SignalId::kMainRunningSeconds, cpu},
                                                        {SignalId::kMainWaitClass, 0}}));
    }
  }
  say(kBack + 0.9, printed);
  for (double t = kBack + 1.9; t < kEnd; ++t) say(t, 1);
  const Tape node = Node(false);
  Engine engine({}, "n1");
  int64_t before = 0;
  for (const Observation* observation : Merge(jobs, node)) {
    if (observation->t > AtSecond(until)) break;
    if (observation->t < AtSecond(kAway))
      before = engine.Find("j1") ? engine.Find("j1")->verdict_changes : 0;
    if (std::holds_alternative<Tick>(observation->kind)) {
      engine.Tick(observation->t);
    } else {
      engine.Accept(*observation);
    }
  }
  if (changes != nullptr) *changes = engine.Find("j1")->verdict_changes - before;
  return VerdictOf(engine, "j1");
}

TEST(Gaps, AStoppedDaemonIsNoPausedHost) {
  for (const double until : {kBack + 1, kBack + 5, kBack + 20, kBack + 100}) {
    int64_t changes = -1;
    const proto::Verdict verdict = AfterTheGap(1, 1, until, &changes);
    EXPECT_EQ(verdict.code(), "G1") << until << VerdictToJson(verdict);
    EXPECT_EQ(changes, 0) << until;
  }
}

TEST(Gaps, AJobThatIsSlowerMeanwhileIsNoPausedHost) {
  EXPECT_EQ(AfterTheGap(0.3, 1, kBack + 20).code(), "G1");
}

TEST(Gaps, ANodeThatStoodStillIsSeenByTheProcessesThatDidNotRun) {
  const proto::Verdict verdict = AfterTheGap(0, 1, kBack + 20);
  EXPECT_EQ(verdict.code(), "X14") << VerdictToJson(verdict);
  EXPECT_EQ(verdict.sub(), "host");
  EXPECT_EQ(verdict.ground(), proto::GROUND_ONE_SOURCE);
  EXPECT_GE(AfterTheGap(0, 46, kBack + 20).ground(), proto::GROUND_TWO_SOURCES)
      << "the step took as long";
  EXPECT_EQ(AfterTheGap(0, 46, kBack + 164).code(), "G1") << "it is over";
}

}  // namespace
}  // namespace rankscope::engine
