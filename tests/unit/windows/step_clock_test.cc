// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/series/step_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rankscope::windows {
namespace {

logs::Progress AtStep(double step) {
  logs::Progress progress;
  if (!std::isnan(step)) {
    progress.step_text = "x";
    progress.step = step;
  }
  return progress;
}

Timestamp Second(double second) {
  return {static_cast<int64_t>((1000 + second) * 1e9)};
}

TEST(StepClock, ArrivalsGiveSecondsPerStep) {
  StepClock clock;
  for (int i = 0; i < 10; ++i) clock.Add(AtStep(10 * i), Second(5 * i));
  EXPECT_FALSE(clock.printed());
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 0.5);
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 5);
  EXPECT_DOUBLE_EQ(clock.steps_done(), 91) << "counted from 0";
  EXPECT_TRUE(clock.steps_known());
}

TEST(StepClock, PrintedTimesWinOverArrivals) {
  StepClock clock;
  for (int i = 1; i <= 10; ++i) {
    logs::Progress progress = AtStep(i);
    if (i > 3) progress.step_seconds = 0.25;
    clock.Add(progress, Second(7 * i));
  }
  EXPECT_TRUE(clock.printed());
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 0.25) << "not a mixture with 7 s";
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 7) << "silence is measured by arrivals";
}

TEST(StepClock, BlocksOutOfABufferShareTheirInterval) {
  StepClock clock;
  double step = 0;
  for (int block = 0; block < 4; ++block) {
    for (int i = 0; i < 10; ++i, ++step)
      clock.Add(AtStep(step), Timestamp{Second(10 * block).ns + i * 1000});
  }
  EXPECT_TRUE(clock.buffered());
  EXPECT_NEAR(clock.MedianRecordSeconds(), 1, 1e-6);
}

TEST(StepClock, EveryRankPrintsTheSameStep) {
  StepClock clock;
  for (int step = 1; step <= 20; ++step) {
    for (int rank = 0; rank < 8; ++rank)
      clock.Add(AtStep(step), Timestamp{Second(2 * step).ns + rank * 5'000'000});
  }
  EXPECT_EQ(clock.records(), 160);
  EXPECT_DOUBLE_EQ(clock.steps_done(), 20);
  EXPECT_NEAR(clock.MedianStepSeconds(), 2, 0.05);
  EXPECT_NEAR(clock.MedianRecordSeconds(), 2, 0.05);
}

TEST(StepClock, CountersThatBeginAgainEachEpoch) {
  StepClock clock;
  double now = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step <= 90; step += 10, now += 5) clock.Add(AtStep(step), Second(now));
  }
  EXPECT_DOUBLE_EQ(clock.last_step(), 90);
  EXPECT_DOUBLE_EQ(clock.steps_done(), 91) << "what can be shown, not what may be";
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 0.5) << "a step back is no interval";
}

TEST(StepClock, StepsOfEachEpochAddUp) {
  StepClock clock;
  double second = 0;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (int batch = 10; batch <= 40; batch += 10) {
      logs::Progress progress = AtStep(batch);
      progress.epoch = epoch;
      clock.Add(progress, Second(++second));
    }
  }
  EXPECT_DOUBLE_EQ(clock.steps_done(), 120);
  EXPECT_DOUBLE_EQ(clock.reached(), 40);
}

TEST(StepClock, AStepThatFallsAloneIsNoEpoch) {
  StepClock clock;
  for (const double step : {10., 20., 30., 20., 30., 40.}) {
    logs::Progress progress = AtStep(step);
    progress.epoch = 1;
    clock.Add(progress, Second(step));
  }
  EXPECT_DOUBLE_EQ(clock.steps_done(), 40) << "it went back to a checkpoint";
}

TEST(StepClock, EpochsAreNoSteps) {
  StepClock clock;
  for (int epoch = 1; epoch <= 20; ++epoch) {
    logs::Progress progress = AtStep(epoch);
    progress.step_unit = logs::StepUnit::kEpochs;
    clock.Add(progress, Second(epoch <= 12 ? 30 * epoch : 60 * epoch - 360));
  }
  EXPECT_FALSE(clock.steps_known());
  EXPECT_TRUE(std::isnan(clock.MedianStepSeconds()));
  EXPECT_DOUBLE_EQ(clock.EarlyPace(), 30);
  EXPECT_DOUBLE_EQ(clock.NewestPace(), 60);
}

TEST(StepClock, SharesOfEpochsHaveAPaceAndRepeatedOnesHaveNone) {
  StepClock clock, repeated;
  for (int i = 1; i <= 30; ++i) {
    logs::Progress progress = AtStep(NAN);
    progress.epoch = 0.01 * i;
    clock.Add(progress, Second(5 * i));
    progress.epoch = 0.5;
    repeated.Add(progress, Second(5 * i));
  }
  EXPECT_DOUBLE_EQ(clock.MedianPace(), 5);
  EXPECT_TRUE(std::isnan(repeated.MedianPace())) << "nothing says that it went on";
}

TEST(StepClock, WithoutNumbersRecordsCount) {
  StepClock clock;
  for (int i = 0; i < 7; ++i) clock.Add(AtStep(logs::kAbsent), Second(i));
  EXPECT_FALSE(clock.steps_known());
  EXPECT_DOUBLE_EQ(clock.steps_done(), 7);
  EXPECT_TRUE(std::isnan(clock.MedianStepSeconds()));
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 1);
}

TEST(StepClock, TextFromAFileHasNoIntervals) {
  StepClock clock;
  for (int i = 0; i < 50; ++i) clock.Add(AtStep(i), Second(0));
  EXPECT_TRUE(std::isnan(clock.MedianRecordSeconds()));
  EXPECT_TRUE(std::isnan(clock.MedianStepSeconds()));
}

StepClock::Interval Past(int64_t printed_ms = 0) {
  StepClock::Interval interval;
  interval.past = true;
  interval.printed_ms = printed_ms;
  return interval;
}

TEST(StepClock, ALogOfHoursThatIsReadInASecondTellsNoTimes) {
  StepClock clock;
  for (int i = 0; i < 7200; ++i) clock.Add(AtStep(i), Second(i * 1e-4), Past());
  EXPECT_TRUE(std::isnan(clock.MedianStepSeconds()));
  EXPECT_TRUE(std::isnan(clock.MedianRecordSeconds()));
  EXPECT_EQ(clock.LongestRecordSeconds(), 0);
  EXPECT_FALSE(clock.buffered());
  EXPECT_DOUBLE_EQ(clock.steps_done(), 7200);
  EXPECT_EQ(clock.last_progress(), Second(7199 * 1e-4)) << "silence begins when it was read";
  // What comes now is timed among itself: the first of it may have been under way for long.
  clock.Add(AtStep(7200), Second(40));
  EXPECT_TRUE(std::isnan(clock.MedianStepSeconds()));
  for (int i = 1; i < 10; ++i) clock.Add(AtStep(7200 + i), Second(40 + 2 * i));
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 2);
  EXPECT_DOUBLE_EQ(clock.P99RecordSeconds(), 2);
}

TEST(StepClock, PrintedDatesTimeWhatWasReadLater) {
  StepClock clock;
  constexpr int64_t kNoon = 1'772'452'800'000;
  for (int i = 0; i < 100; ++i) clock.Add(AtStep(i), Second(1), Past(kNoon + 3000 * i));
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 3);
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 3);
  // A part of the file that was passed over is no interval, and a date that goes back is none.
  clock.Add(AtStep(5000), Second(1), Past());
  clock.Add(AtStep(5001), Second(1), Past(kNoon + 15'000'000));
  clock.Add(AtStep(5002), Second(1), Past(kNoon + 15'003'000));
  clock.Add(AtStep(5003), Second(1), Past(kNoon));
  EXPECT_DOUBLE_EQ(clock.LongestRecordSeconds(), 3);
  EXPECT_DOUBLE_EQ(clock.P99RecordSeconds(), 3);
}

TEST(StepClock, DatesOfWholeSecondsAreSharedByTheRecordsInThem) {
  StepClock clock;
  for (int i = 0; i < 100; ++i) clock.Add(AtStep(i), Second(1), Past(1000 + 1000 * (i / 10)));
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 0.1);
}

TEST(StepClock, ADurationThatIsPrintedIsBelievedOfThePastToo) {
  StepClock clock;
  for (int i = 0; i < 10; ++i) {
    logs::Progress progress = AtStep(i);
    progress.step_seconds = 0.25;
    clock.Add(progress, Second(1), Past());
  }
  EXPECT_DOUBLE_EQ(clock.MedianStepSeconds(), 0.25);
  EXPECT_TRUE(std::isnan(clock.MedianRecordSeconds()));
}

TEST(StepClock, TheP99SeesARarePause) {
  StepClock clock;
  double now = 0;
  for (int i = 0; i < 100; ++i) {
    now += i == 50 || i == 70 ? 40 : 1;
    clock.Add(AtStep(i), Second(now));
  }
  EXPECT_DOUBLE_EQ(clock.MedianRecordSeconds(), 1);
  EXPECT_GT(clock.P99RecordSeconds(), 30);
}

TEST(StepClock, TheBaselineComesOnceAsManyHaveBeenTimedAgain) {
  StepClock clock;
  double now = 0;
  for (int i = 0; i < 45; ++i) {
    now += i < 6 ? 30 : 1;  // compilation
    clock.Add(AtStep(i), Second(now));
  }
  EXPECT_TRUE(std::isnan(clock.EarlyStepSeconds()));
  for (int i = 45; i < 60; ++i) clock.Add(AtStep(i), Second(now += 9));
  EXPECT_DOUBLE_EQ(clock.EarlyStepSeconds(), 1);
}

TEST(StepClock, TimeThatRunsBackwardsIsNoInterval) {
  StepClock clock;
  for (int i = 0; i < 10; ++i) clock.Add(AtStep(i), Second(100 - i));
  EXPECT_TRUE(std::isnan(clock.MedianRecordSeconds()));
}

TEST(StepClock, SavesAreNotOfTheUsualSpread) {
  StepClock clock;
  double now = 0;
  for (int i = 0; i < 40; ++i) {
    const bool save = i > 0 && i % 10 == 0;
    now += save ? 90 : 1;
    clock.Add(AtStep(i), Second(now), {{}, save});
  }
  EXPECT_NEAR(clock.P99RecordSeconds(), 1, 1e-9);
  EXPECT_NEAR(clock.LongestRecordSeconds(), 90, 1e-9) << "but it has been silent for so long";
}

}  // namespace
}  // namespace rankscope::windows
