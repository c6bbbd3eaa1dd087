// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/process_totals.h"

#include <gtest/gtest.h>

#include <map>

namespace rankscope::windows {
namespace {

constexpr SignalId kBytes = SignalId::kAllReduceBytes;        // summed
constexpr SignalId kBusBytes = SignalId::kAllReduceBusBytes;  // a rate

Timestamp At(double second) {
  return {static_cast<int64_t>((1000 + second) * 1e9)};
}

class Totals : public testing::Test {
 protected:
  void Hear(int32_t pid, SignalId signal, double value, double second, bool foreign = false) {
    Speaker speaker;
    speaker.process = {pid, 7};
    speaker.foreign = foreign;
    SampleBatch batch;
    batch.samples = {{signal, value}};
    totals_.OnSamples(batch, speaker, At(second));
  }

  double Of(SignalId signal, double second) const {
    std::map<SignalId, double> known;
    totals_.Each(At(second), [&known](SignalId id, double value) { known[id] = value; });
    return known.contains(signal) ? known[signal] : -1;
  }

  ProcessTotals totals_;
};

TEST_F(Totals, OfAllProcessesThereHaveBeen) {
  EXPECT_EQ(Of(kBytes, 0), -1);
  Hear(10, kBytes, 100, 0);
  Hear(11, kBytes, 50, 0);
  Hear(10, kBytes, 130, 1);
  EXPECT_EQ(Of(kBytes, 1), 180);
  Hear(10, kBytes, 5, 2);  // counted from 0 again
  EXPECT_EQ(Of(kBytes, 2), 185);
  EXPECT_EQ(Of(kBytes, 5000), 185) << "a process that has ended takes nothing with it";
}

TEST_F(Totals, WhatIsNotOfTheJobDoesNotCount) {
  Hear(10, kBytes, 100, 0, true);
  Hear(0, kBytes, 100, 0);
  Hear(10, SignalId::kCollectiveBytes, 100, 0);
  EXPECT_EQ(Of(kBytes, 0), -1);
}

TEST_F(Totals, ARateIsThatOfTheLastMinuteAndTheMeanOfTheProcesses) {
  for (int second = 0; second <= 200; ++second) {
    Hear(10, kBusBytes, 1e6 + 1000.0 * second, second);
    Hear(11, kBusBytes, 3000.0 * second, second);
    if (second < 10) {
      EXPECT_EQ(Of(kBusBytes, second), -1) << "too short a time";
    }
  }
  EXPECT_NEAR(Of(kBusBytes, 200), 2000, 1) << "what was counted before is no growth";
}

TEST_F(Totals, ARateFallsWhenNothingIsAddedAndEndsWithItsProcesses) {
  for (int second = 0; second <= 120; ++second)
    Hear(10, kBusBytes, 1000.0 * std::min(second, 60), second);
  EXPECT_EQ(Of(kBusBytes, 120), 0);
  EXPECT_EQ(Of(kBusBytes, 300), -1);
}

TEST_F(Totals, AreBounded) {
  for (int pid = 1; pid <= 1000; ++pid) Hear(pid, kBytes, 1, pid);
  EXPECT_EQ(Of(kBytes, 1000), 1000);
}

}  // namespace
}  // namespace rankscope::windows
