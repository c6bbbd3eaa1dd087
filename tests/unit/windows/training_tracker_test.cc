// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/training_tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "detectors/model/archive.h"
#include "detectors/windows/surroundings.h"

namespace rankscope::windows {
namespace {

// Feeds records of one training; what a test does not set is not printed.
class Training {
 public:
  logs::Progress& Next(double step) {
    progress_ = {};
    progress_.format = "megatron";
    progress_.step = step;
    progress_.step_text = "1";
    return progress_;
  }
  void Feed() {
    if (!std::isnan(progress_.grad_norm)) progress_.grad_norm_text = "1";
    if (!std::isnan(progress_.learning_rate) && progress_.learning_rate_text.empty())
      progress_.learning_rate_text = progress_.learning_rate == 0 ? "0.0" : "0.00012";
    const std::string line = "step " + std::to_string(progress_.step);
    tracker.Add({progress_, 1, offset_, line, Timestamp{offset_}, tracker.records()});
    offset_ += 100;
  }
  void GradNorm(double step, double norm) {
    Next(step).grad_norm = norm;
    Feed();
  }
  void Rate(double step, double rate, std::string_view text = {}) {
    Next(step).learning_rate = rate;
    progress_.learning_rate_text = text;
    Feed();
  }
  void Scale(double step, double scale) {
    Next(step).loss_scale = scale;
    Feed();
  }
  void Seconds(double step, double seconds) {
    Next(step).step_seconds = seconds;
    Feed();
  }
  void Save(double step, logs::MarkerKind kind = logs::MarkerKind::kSaveBegin) {
    logs::Marker marker;
    marker.kind = kind;
    marker.number = step;
    LogLine line;
    line.text = "saving";
    tracker.OnMarker(marker, 1, &line, Timestamp{offset_});
  }

  TrainingTracker tracker;

 private:
  logs::Progress progress_;
  int64_t offset_ = 0;
};

TEST(GradNorm, FarAboveItsOwnLevelIsSeenAtAnyScale) {
  for (const double scale : {1e-3, 1.0, 40'000.0}) {
    Training training;
    std::mt19937 random(3);
    std::lognormal_distribution<double> noise(0, 0.3);
    for (int step = 1; step <= 400; ++step) training.GradNorm(step, scale * noise(random));
    EXPECT_FALSE(training.tracker.grad_norm_high().seen()) << scale;
    training.GradNorm(401, scale * 60);
    training.GradNorm(402, scale * 30);
    EXPECT_EQ(training.tracker.grad_norm_high().times, 2) << scale;
    EXPECT_EQ(training.tracker.grad_norm_high().point.step, 401) << "the highest is cited";
  }
}

TEST(GradNorm, AnotherLevelIsUsualAfterAWhile) {
  Training training;
  for (int step = 1; step <= 100; ++step) training.GradNorm(step, 1 + 0.1 * (step % 5));
  for (int step = 101; step <= 400; ++step) training.GradNorm(step, 50 + (step % 5));
  EXPECT_LT(training.tracker.grad_norm_high().times, 110);
}

TEST(GradNorm, TheLongestRowOfZerosIsCitedByItsFirst) {
  Training training;
  for (int step = 1; step <= 3; ++step) training.GradNorm(step, 0);
  training.GradNorm(4, 1);
  for (int step = 5; step <= 12; ++step) training.GradNorm(step, 0);
  training.GradNorm(13, 1);
  training.GradNorm(14, 0);
  EXPECT_EQ(training.tracker.grad_norm_zero().times, 8);
  EXPECT_EQ(training.tracker.grad_norm_zero().point.step, 5);
}

double Cosine(int step, int warm_up, int total, double peak) {
  if (step < warm_up) return peak * step / warm_up;
  return 0.5 * peak * (1 + std::cos(M_PI * (step - warm_up) / (total - warm_up)));
}

TEST(LearningRate, SchedulesAsTheyAreUsedAreNoNews) {
  const auto quiet = [](auto&& schedule, const char* name) {
    Training training;
    for (int step = 0; step <= 1000; step += 2) training.Rate(step, schedule(step));
    const LearningRateTracker& rate = training.tracker.learning_rate();
    EXPECT_FALSE(rate.jump().seen()) << name;
    EXPECT_FALSE(rate.restart().seen()) << name;
    EXPECT_LT(rate.zero().times, 3) << name;
  };
  quiet([](int step) { return Cosine(step, 100, 1000, 3e-4); }, "warm-up and cosine");
  quiet([](int step) { return step < 50 ? 1e-5 * step : 5e-4 * (1000 - step) / 950; }, "linear");
  quiet([](int) { return 2e-5; }, "constant");
  quiet([](int step) { return 0.1 * std::pow(0.1, step / 300); }, "steps down");
  quiet([](int step) { return 1e-3 * std::pow(0.995, step); }, "exponential");
  quiet([](int step) { return Cosine(step % 250, 0, 250, 1e-3); }, "warm restarts");
  quiet([](int step) { return 1e-4 * (1 + std::abs(step % 200 - 100)); }, "triangles");
  quiet([](int step) { return 1e-3 * std::min(std::pow(step + 1, -0.5), (step + 1) * 0.001); },
        "inverse square root");
}

TEST(LearningRate, JumpsBeyondAllBefore) {
  Training training;
  for (int step = 0; step < 400; step += 10)
    training.Rate(step, Cosine(step, 100, 1000, step < 250 ? 1e-4 : 1e-3));
  ASSERT_TRUE(training.tracker.learning_rate().jump().seen());
  EXPECT_EQ(training.tracker.learning_rate().jump().point.step, 250);
  EXPECT_DOUBLE_EQ(training.tracker.learning_rate().jump().usual, 1e-4);
}

TEST(LearningRate, WarmsUpAgainWhileTheStepsGoOn) {
  Training training;
  for (int step = 0; step < 1000; step += 10)
    training.Rate(step, Cosine(step < 600 ? step : step - 600, 100, 2000, 2e-4) + 1e-9);
  ASSERT_TRUE(training.tracker.learning_rate().restart().seen());
  EXPECT_EQ(training.tracker.learning_rate().restart().point.step, 600);
}

TEST(LearningRate, StepsThatBeginAgainAreAnotherTraining) {
  Training training;
  for (int round = 0; round < 2; ++round)
    for (int step = 0; step < 500; step += 5) training.Rate(step, Cosine(step, 100, 500, 2e-4));
  EXPECT_FALSE(training.tracker.learning_rate().restart().seen());
}

TEST(LearningRate, ZeroIsZeroOnlyWhereTheTextIsExact) {
  Training exact, rounded;
  for (int step = 1; step <= 40; ++step) {
    exact.Rate(step, step < 20 ? 1e-4 : 0, step < 20 ? "0.0001" : "0.000000E+00");
    rounded.Rate(step, 0, "0.0000");
  }
  EXPECT_EQ(exact.tracker.learning_rate().zero().times, 21);
  EXPECT_EQ(exact.tracker.learning_rate().zero().point.step, 20);
  EXPECT_EQ(rounded.tracker.learning_rate().zero().times, 0);
}

TEST(LossScale, HalvingsCountOnceItHasSettled) {
  Training training;
  double scale = 65536;
  for (int step = 1; step <= 10; ++step) training.Scale(step, scale /= 2);  // the search
  for (int step = 11; step <= 60; ++step) training.Scale(step, scale);
  EXPECT_FALSE(training.tracker.scale_falls().seen());
  for (int step = 61; step <= 64; ++step) training.Scale(step, scale /= 2);
  EXPECT_EQ(training.tracker.scale_falls().times, 4);
  EXPECT_DOUBLE_EQ(training.tracker.scale_falls().usual, 64);
  EXPECT_DOUBLE_EQ(training.tracker.scale_falls().point.value, 4);
  training.Scale(65, scale *= 2);
  training.Scale(66, scale *= 2);
  EXPECT_FALSE(training.tracker.scale_falls().seen()) << "it has recovered";
}

TEST(LossScale, AnOverflowNowAndThenIsHowItWorks) {
  Training training;
  for (int step = 1; step <= 3000; ++step) training.Scale(step, step % 1000 < 500 ? 65536 : 32768);
  EXPECT_LT(training.tracker.scale_falls().times, 2);
}

TEST(StepTime, SpikesCountOutsideOfSaves) {
  Training training;
  for (int step = 1; step <= 300; ++step) {
    if (step % 100 == 0) training.Save(step);
    training.Seconds(step, step % 100 == 0 ? 9 : 0.5 + 0.01 * (step % 7));
  }
  EXPECT_FALSE(training.tracker.slow_steps().seen());
  training.Seconds(301, 4);
  EXPECT_EQ(training.tracker.slow_steps().times, 1);
  EXPECT_NEAR(training.tracker.slow_steps().usual, 0.53, 0.01);
}

TEST(Saves, TheIntervalIsTheRunsOwn) {
  Training training;
  for (int step = 500; step <= 2000; step += 500) {
    training.Save(step);
    training.Save(step, logs::MarkerKind::kSaveEnd);  // the same save
  }
  EXPECT_EQ(training.tracker.saves().saves(), 4);
  EXPECT_DOUBLE_EQ(training.tracker.saves().Interval(), 500);
  Training irregular;
  for (const double step : {100, 700, 750, 2000}) irregular.Save(step);
  EXPECT_TRUE(std::isnan(irregular.tracker.saves().Interval())) << "saves when a score improves";
}

TEST(Skips, DeepSpeedCountsFromTheBeginning) {
  for (const std::string_view format : {"deepspeed", "megatron"}) {
    Training training;
    for (int step = 10; step <= 1000; step += 10) {
      logs::Progress& progress = training.Next(step);
      progress.format = format;
      progress.skipped_iterations = 7;
      training.Feed();
    }
    if (format == "deepspeed") {
      EXPECT_EQ(training.tracker.skipped().times, 0);
    } else {
      EXPECT_EQ(training.tracker.skipped().times, 80 * 7);
      EXPECT_DOUBLE_EQ(training.tracker.skippable(), 800);
    }
  }
}

TEST(Zeros, AJumpThatStays) {
  Training training;
  for (int step = 1; step <= 100; ++step) {
    training.Next(step).num_zeros = step < 80 ? 20'000 + step : 9e8;
    training.Feed();
  }
  EXPECT_EQ(training.tracker.gradient_zeros().times, 21);
  EXPECT_NEAR(training.tracker.gradient_zeros().usual, 20'000, 100);
}

TEST(TrainingTracker, IsTheSameAfterARestore) {
  const auto feed = [](Training& training, int from, int to) {
    for (int step = from; step <= to; ++step) {
      logs::Progress& progress = training.Next(step);
      progress.grad_norm = step % 50 == 0 ? 90 : 1 + 0.01 * (step % 9);
      progress.loss_scale = step < 100 ? 65536 : 65536 >> (step % 8);
      progress.learning_rate = 1e-4;
      progress.step_seconds = step % 40 == 0 ? 30 : 1;
      progress.tokens_per_second = 1000.0 - step;
      training.Feed();
      if (step % 60 == 0) training.Save(step);
    }
  };
  Training whole, half;
  feed(whole, 1, 300);
  feed(half, 1, 150);
  ArchiveWriter writer;
  writer(half.tracker);
  const std::string bytes = writer.Take();
  Training again;
  feed(again, 1, 150);  // brings its offsets to the same place
  ArchiveReader reader(bytes);
  reader(again.tracker);
  ASSERT_TRUE(reader.Complete());
  feed(again, 151, 300);
  ArchiveWriter one, other;
  one(whole.tracker);
  other(again.tracker);
  EXPECT_EQ(one.Take(), other.Take());
}

TEST(Surroundings, KeepsSettingsOnceAndWhoHasThem) {
  Surroundings all;
  const std::vector<KeyValue> environment = {
      {"NCCL_ALGO", "Ring"}, {"RANK", "0"}, {"TRITON_CACHE_DIR", "/fsx/cache"}};
  for (const int32_t rank : {2, 0, 1, 2}) all.OnEnvironment(environment, {100 + rank, 1}, rank, {});
  ASSERT_EQ(all.all().size(), 2u);
  EXPECT_EQ(all.all()[0].name, "NCCL_ALGO");
  EXPECT_EQ(all.all()[0].ranks, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(all.all()[0].process.pid, 102);
}

TEST(Surroundings, AVariableThatALibraryReadIsAVariable) {
  Surroundings all;
  logs::Marker marker;
  marker.kind = logs::MarkerKind::kFact;
  marker.name = "nccl_setting";
  marker.text = "NCCL_PROTO set by environment to Simple";
  all.OnFact(marker, 3, 77, "the line", {});
  ASSERT_EQ(all.all().size(), 1u);
  EXPECT_TRUE(all.all()[0].variable);
  EXPECT_EQ(all.all()[0].name, "NCCL_PROTO");
  EXPECT_EQ(all.all()[0].value, "Simple");
  EXPECT_EQ(all.all()[0].offset, 77);
}

TEST(Surroundings, IsBounded) {
  Surroundings all;
  for (int i = 0; i < 1000; ++i) {
    all.OnEnvironment({{"NCCL_SAME", std::to_string(i)}, {"NCCL_" + std::to_string(i), "1"}},
                      {1, 1}, i, {});
  }
  EXPECT_EQ(all.all().size(), Surroundings::kMost);
}

}  // namespace
}  // namespace rankscope::windows
