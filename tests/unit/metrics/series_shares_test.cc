// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How many series of one page each user's jobs may have.
#include <gtest/gtest.h>

#include <vector>

#include "exporter/metrics/shown_jobs.h"

namespace rankscope::metrics {
namespace {

class SeriesSharesTest : public testing::Test {
 protected:
  // A tick at which both users' jobs want so many; how many each got.
  std::vector<size_t> Tick(std::vector<size_t> wanted, size_t room) {
    std::vector<JobStatus> jobs(wanted.size());
    std::vector<ShownJob> shown;
    for (size_t i = 0; i < jobs.size(); ++i) {
      jobs[i].uid = static_cast<int64_t>(1000 + i);
      shown.push_back({&jobs[i]});
    }
    shares_.Begin(shown, room);
    std::vector<size_t> got(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (size_t n = 0; n < wanted[i]; ++n) got[i] += shares_.Take(jobs[i].uid, 1);
    }
    return got;
  }

  SeriesShares shares_;
};

using Got = std::vector<size_t>;

TEST_F(SeriesSharesTest, OneUserHasNoShare) {
  EXPECT_EQ(Tick({500}, 100), (Got{500}));  // the page's own cap is another matter
}

TEST_F(SeriesSharesTest, NewUsersHaveEvenShares) {
  EXPECT_EQ(Tick({5000, 40}, 100), (Got{50, 40}));
}

TEST_F(SeriesSharesTest, WhatOneLeavesTheOtherHas) {
  Tick({5000, 40}, 100);
  EXPECT_EQ(Tick({5000, 40}, 100), (Got{60, 40}));
}

TEST_F(SeriesSharesTest, WhereAllFitsNobodyIsCut) {
  Tick({40, 40}, 100);
  EXPECT_EQ(Tick({50, 45}, 100), (Got{50, 45}));
}

TEST_F(SeriesSharesTest, BothWantMoreThanHalf) {
  Tick({80, 90}, 100);
  EXPECT_EQ(Tick({80, 90}, 100), (Got{50, 50}));
}

}  // namespace
}  // namespace rankscope::metrics
