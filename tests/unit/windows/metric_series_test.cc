// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/metric_series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace rankscope::windows {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void Add(MetricSeries& series, std::string_view name, double value, bool has_graph = false) {
  series.Add(name, value, has_graph, 1, 0, "line", {1});
}

TEST(MetricSeries, AValueThatChangesIsARow) {
  MetricSeries series;
  EXPECT_EQ(series.Longest(), nullptr);
  for (int i = 0; i < 5; ++i) {
    Add(series, "train loss", 3 - 0.5 * i);
    Add(series, "best loss", 1);  // of a listing, or of a run that does not get better
  }
  const MetricRow* row = series.Longest();
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->name, "train loss");
  EXPECT_EQ(row->values, 5);
  EXPECT_EQ(row->changes, 4);
  EXPECT_DOUBLE_EQ(row->first, 3);
  EXPECT_DOUBLE_EQ(row->last.value, 1);
}

TEST(MetricSeries, ANumberInTheNameIsTheSameName) {
  MetricSeries series;
  Add(series, "epoch 3 loss", 2);
  Add(series, "Epoch 4 Loss", 1);
  EXPECT_EQ(series.Longest()->values, 2);
}

TEST(MetricSeries, WhatIsNotFiniteAtTheEndIsCounted) {
  MetricSeries series;
  Add(series, "loss", 2);
  Add(series, "loss", kNan);
  Add(series, "loss", kNan);
  EXPECT_EQ(series.Longest()->trailing_nonfinite, 2);
  EXPECT_EQ(series.Longest()->changes, 1);  // once it became so, and stayed so
  Add(series, "loss", 1.5);
  EXPECT_EQ(series.Longest()->trailing_nonfinite, 0);
  EXPECT_DOUBLE_EQ(series.Longest()->first, 2);
}

TEST(MetricSeries, ManyNamesDoNotPushOutTheOneThatChanges) {
  MetricSeries series;
  Add(series, "loss", 2);
  Add(series, "loss", 1);
  for (char c = 'a'; c <= 'z'; ++c) Add(series, std::string(3, c) + " reward", 1);
  Add(series, "loss", 0.5);
  EXPECT_EQ(series.Longest()->values, 3);
}

TEST(MetricSeries, ALossThatEndsAsNoNumberIsNamed) {
  MetricSeries series;
  for (int i = 0; i < 3; ++i) {
    Add(series, "val_loss", kNan);
    Add(series, "mean reward", kNan);
    Add(series, "total", kNan);
  }
  EXPECT_EQ(series.NotFinite(), nullptr);
  Add(series, "Train Loss", 2);
  Add(series, "Train Loss", kNan);
  ASSERT_NE(series.NotFinite(), nullptr);
  EXPECT_EQ(series.NotFinite()->name, "Train Loss");
  EXPECT_EQ(series.NotFinite()->first_nonfinite.index, 1);
  Add(series, "total", kNan, true);
  EXPECT_EQ(series.NotFinite()->name, "total");
  EXPECT_EQ(series.NotFinite()->first_nonfinite.index, 0);
  Add(series, "total", 3, true);
  Add(series, "Train Loss", 1.5);
  EXPECT_EQ(series.NotFinite(), nullptr);
}

TEST(MetricSeries, ALossThatIsNotPrintedAnyMoreIsForgotten) {
  MetricSeries series;
  Add(series, "first loss", kNan);
  Add(series, "first loss", kNan);
  for (int i = 0; i < 8; ++i) Add(series, "second loss", 2 - 0.1 * i);
  ASSERT_NE(series.NotFinite(), nullptr);
  EXPECT_EQ(series.NotFinite()->name, "first loss");
  Add(series, "second loss", 1);
  EXPECT_EQ(series.NotFinite(), nullptr);
}

}  // namespace
}  // namespace rankscope::windows
