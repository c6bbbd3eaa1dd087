// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/lead_tracker.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "detectors/model/archive.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::windows {
namespace {

constexpr int kRanks = 4;
constexpr double kWork = 0.7, kChannels = 0.15;

TEST(Cusum, FindsAChangeAndNoNoise) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  Cusum cusum;
  for (int i = 0; i < 20000; ++i) {
    cusum.Add(normal(random), 1000);
    ASSERT_FALSE(cusum.rose() || cusum.fell()) << i;
  }
  int values = 0;
  for (; !cusum.rose() && values < 100; ++values) cusum.Add(normal(random) + 2, 1000);
  EXPECT_LT(values, 20);
  EXPECT_EQ(cusum.low_values, 0U);
}

TEST(Cusum, CountsAnOutlierOnce) {
  Cusum cusum;
  cusum.Add(1000, 1000);
  EXPECT_LT(cusum.high, Cusum::kClip);
  for (int i = 0; i < 5; ++i) cusum.Add(0, 1000);
  EXPECT_EQ(cusum.high, 0);
}

// Four GPUs, a look each second: by rank, the share of the time that it computes and that its
// engine is on.
class Node {
 public:
  // How much a rank's own share of the time varies.
  explicit Node(double noise = 0.01, uint64_t seed = 5) : random_(seed), noise_(noise) {
    for (int rank = 0; rank < kRanks; ++rank) gpus_[static_cast<size_t>(rank)].ranks = {rank};
    leads_.OnStepSeconds(0.5);
  }

  struct Second {
    std::array<double, kRanks> computes{}, engine{};
  };
  void Look(const Second& second) {
    ++now_;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      GpuWindow& gpu = gpus_[rank];
      GpuSecond look;
      look.t = At(0.002 * static_cast<double>(rank));
      const double noise = static_cast<int>(rank) == quiet_ ? noise_ / 2 : noise_;
      const double computes = second.computes[rank] * (1 + noise * normal_(random_));
      look.engine = static_cast<float>(second.engine[rank]);
      const double waits = std::max(0.0, second.engine[rank] - computes);
      if (watts_) {
        look.power = static_cast<float>(60 + 300 * computes + 120 * waits);
      } else {
        look.sm = static_cast<float>(computes * kWork + waits * kChannels);
      }
      gpu.seconds[gpu.written++ % GpuWindow::kSeconds] = look;
      leads_.OnGpu(gpu, look.t, unheard_until_);
    }
  }
  // Its GPUs tell of their power, and not of their SMs.
  void TellWatts() { watts_ = true; }
  // Collectives, that each rank enters in a second.
  void Enter(int collectives) {
    entered_ += collectives;
    for (int rank = 0; rank < kRanks; ++rank) {
      SampleBatch batch;
      batch.samples = {{SignalId::kCollectivesEnqueued, static_cast<double>(entered_)}};
      Speaker speaker;
      speaker.rank = rank;
      leads_.OnSamples(batch, speaker, At());
    }
  }
  // A rank varies half as much as the others; -1: none does.
  void Quiet(int rank) { quiet_ = rank; }
  void Train(int seconds, int late = -1, double by = 0) {
    for (int i = 0; i < seconds; ++i) {
      Second second;
      second.engine.fill(1);
      second.computes.fill(0.8 / (1 + by));
      if (late >= 0) second.computes[static_cast<size_t>(late)] = (0.8 + by) / (1 + by);
      Look(second);
    }
  }
  // Rank 0 writes, the others wait for it.
  void Save(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      Second second;
      second.engine = {0, 1, 1, 1};
      Look(second);
    }
  }

  Timestamp At(double more = 0) const { return {static_cast<int64_t>((now_ + more) * 1e9)}; }
  LeadTracker& leads() { return leads_; }
  const RankLead& of(int32_t rank) const { return leads_.gpus().ranks().at(rank); }
  int LateRanks() const {
    int late = 0;
    for (const auto& [number, rank] : leads_.gpus().ranks()) late += rank.late ? 1 : 0;
    return late;
  }
  void Away(double seconds) {
    now_ += seconds;
    unheard_until_ = At();
  }

 private:
  LeadTracker leads_;
  std::array<GpuWindow, kRanks> gpus_;
  std::mt19937_64 random_;
  double noise_;
  int quiet_ = -1;
  bool watts_ = false;
  int64_t entered_ = 0;
  std::normal_distribution<double> normal_;
  double now_ = 100;
  Timestamp unheard_until_;
};

TEST(LeadTracker, NamesARankThatBecomesLate) {
  Node node;
  node.Train(150);
  EXPECT_EQ(node.LateRanks(), 0);
  const Timestamp onset = node.At();
  node.Train(15, 2, 0.056);
  EXPECT_TRUE(node.of(2).late);
  EXPECT_EQ(node.LateRanks(), 1) << "and nobody else";
  EXPECT_LT(std::abs((node.of(2).late_since - onset).seconds()), 15);
  node.Train(100, 2, 0.056);
  EXPECT_NEAR(node.of(2).Level(30) - node.of(2).usual, 0.04, 0.012) << "a little less than it is";
  EXPECT_GT(node.of(2).Identity(30), 0.9);
}

TEST(LeadTracker, NamesARankWhoseEngineRests) {
  Node node;
  node.Train(150);
  for (int i = 0; i < 20; ++i) {
    Node::Second second;
    second.engine = {1, 1, 1, 0.9};
    second.computes = {0.73, 0.73, 0.73, 0.73};
    node.Look(second);
  }
  EXPECT_TRUE(node.of(3).late);
  EXPECT_EQ(node.LateRanks(), 1);
}

TEST(LeadTracker, ForgetsOneThatIsAsEarlyAsTheOthersAgain) {
  Node node;
  node.Train(150);
  node.Train(40, 2, 0.1);
  ASSERT_TRUE(node.of(2).late);
  node.Train(40);
  EXPECT_FALSE(node.of(2).late);
}

TEST(LeadTracker, TakesALevelThatIsThereFromTheBeginningAsUsual) {
  Node node;
  node.Train(300, 1, 0.2);
  EXPECT_EQ(node.LateRanks(), 0);
  EXPECT_GT(node.of(1).Level(30), 0.1);
  EXPECT_NEAR(node.of(1).learned, node.of(1).Level(30), 0.02);
}

TEST(LeadTracker, IsNotMisledByLongSaves) {
  Node node;
  node.Train(150);
  for (int save = 0; save < 6; ++save) {
    node.Save(60);
    node.Train(20);
    EXPECT_EQ(node.LateRanks(), 0) << save;
  }
}

TEST(LeadTracker, IsNotMisledByRanksThatAreSlowInTurn) {
  Node node;
  node.Train(150);
  for (int i = 0; i < 400; ++i) node.Train(1, i % kRanks, 0.2);
  EXPECT_EQ(node.LateRanks(), 0);
}

// The first rounds of a rank may be quiet by chance, and what follows is then no change.
TEST(LeadTracker, IsNotMisledByRanksThatVaryByThemselves) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Node node(0.0375, seed);
    for (int i = 0; i < 500; ++i) {
      node.Quiet(i < 80 ? 2 : -1);
      node.Train(1);
      ASSERT_EQ(node.LateRanks(), 0) << "after " << i << " s, seed " << seed;
    }
    int seconds = 0;
    for (; seconds < 100 && !node.of(2).late; ++seconds) node.Train(1, 2, 0.056);
    EXPECT_LT(seconds, 100) << "seed " << seed;
  }
}

TEST(LeadTracker, KnowsByTheirPowerWhoWaits) {
  Node node;
  node.TellWatts();
  node.Train(150);
  node.Train(40, 2, 0.3);
  const LeadSeries& power = node.leads().power();
  EXPECT_TRUE(power.ranks().at(2).late);
  EXPECT_GT(power.ranks().at(2).Level(20), 0.05);
  EXPECT_LT(power.ranks().at(2).Level(20), 0.3) << "less than it is: who waits draws, too";
  EXPECT_EQ(node.LateRanks(), 0) << "the engine of each is on all the time";
}

TEST(LeadTracker, AsksNoPowerWhereSmsAreTold) {
  Node node;
  node.Train(150);
  EXPECT_TRUE(node.leads().power().ranks().empty());
}

// An evaluation that nobody tells of: each rank computes for itself, and enters no collective.
TEST(LeadTracker, IsNotMisledByAnEvaluationWithoutAWord) {
  Node node;
  const auto train = [&node](int seconds, int late, double by) {
    for (int i = 0; i < seconds; ++i) {
      node.Train(1, late, by);
      node.Enter(10);
    }
  };
  train(150, -1, 0);
  train(60, 2, 0.1);
  ASSERT_TRUE(node.of(2).late);
  const Timestamp since = node.of(2).late_since;
  for (int i = 0; i < 60; ++i) {
    node.Train(1);  // all alike
    node.Enter(0);
  }
  train(30, 2, 0.1);
  EXPECT_TRUE(node.of(2).late);
  EXPECT_EQ(node.of(2).late_since.ns, since.ns) << "as before it";
}

TEST(LeadTracker, ComparesNothingWhilePausedOrUnheard) {
  Node node;
  node.Train(150);
  const uint32_t rounds = node.leads().gpus().rounds();
  node.leads().Pause(true);
  node.Train(30, 2, 0.5);
  EXPECT_EQ(node.leads().gpus().rounds(), rounds);
  node.leads().Pause(false);
  node.Away(60);
  node.Train(3);
  EXPECT_LE(node.leads().gpus().rounds(), rounds + 3);
  EXPECT_EQ(node.LateRanks(), 0);
}

TEST(LeadTracker, ComparesWholeSteps) {
  Node node;
  node.leads().OnStepSeconds(9.5);
  node.Train(100);
  EXPECT_LE(node.leads().gpus().rounds(), 10U);
}

TEST(LeadTracker, ComparesWaitsInsideCalls) {
  LeadTracker leads;
  leads.OnStepSeconds(1);
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  std::array<double, kRanks> sync{};
  double launches = 0;
  for (int second = 1; second < 260; ++second) {
    launches += 1000;
    for (int rank = 0; rank < kRanks; ++rank) {
      double& total = sync[static_cast<size_t>(rank)];
      total += 0.4 + 0.01 * normal(random) - (rank == 1 && second > 200 ? 0.06 : 0);
      SampleBatch batch;
      batch.subject.kind = Subject::Kind::kProcess;
      batch.samples = {{SignalId::kCudaSyncSeconds, total}, {SignalId::kKernelLaunches, launches}};
      Speaker speaker;
      speaker.rank = rank;
      speaker.process = {100 + rank, 1};
      leads.OnSamples(batch, speaker, {second * int64_t{1'000'000'000}});
    }
    if (second == 200) {
      EXPECT_FALSE(leads.calls().ranks().at(1).late);
    }
  }
  EXPECT_TRUE(leads.calls().ranks().at(1).late);
  EXPECT_FALSE(leads.calls().ranks().at(0).late);
}

}  // namespace
}  // namespace rankscope::windows
