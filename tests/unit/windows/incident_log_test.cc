// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/incident_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::windows {
namespace {

using ::testing::ElementsAre;

Candidate Said(std::string message, int32_t rank = -1, int32_t pid = 0) {
  Candidate candidate;
  candidate.incident.kind = logs::IncidentKind::kException;
  candidate.incident.message = std::move(message);
  candidate.incident.rank = rank;
  candidate.incident.pid = pid;
  return candidate;
}

TEST(IncidentLog, TheSameOfManyRanksIsOneWithASetOfRanks) {
  IncidentLog log;
  for (const int rank : {3, 1, 3, 2}) log.Add(Said("no", rank));
  ASSERT_EQ(log.all().size(), 1u);
  EXPECT_THAT(log.all()[0].ranks, ElementsAre(1, 2, 3));
  EXPECT_EQ(log.all()[0].times, 4);
  EXPECT_EQ(log.total(), 4);
}

TEST(IncidentLog, DifferentWordsStoresAttemptsAndPidsStayApart) {
  IncidentLog log;
  log.Add(Said("no"));
  log.Add(Said("yes"));
  Candidate kernel = Said("no");
  kernel.store = proto::STORE_KERNEL;
  log.Add(kernel);
  Candidate second = Said("no");
  second.attempt = 2;
  log.Add(second);
  log.Add(Said("no", -1, 77));
  log.Add(Said("no", -1, 78));
  EXPECT_EQ(log.all().size(), 6u);
}

TEST(IncidentLog, TheFirstStayAndTheNewestFollow) {
  IncidentLog log;
  constexpr int kMany = 2000;
  // One error of a rank's own among two thousand consequences.
  for (int i = 0; i < kMany; ++i) {
    Candidate candidate = Said("m" + std::to_string(i));
    candidate.incident.role = i == 700 ? logs::Role::kInitiating : logs::Role::kCascade;
    log.Add(std::move(candidate));
  }
  const size_t kept = log.all().size();
  ASSERT_GE(kept, IncidentLog::kFirst + IncidentLog::kNewest);
  ASSERT_LE(kept, IncidentLog::kFirst + 2 * IncidentLog::kNewest);
  EXPECT_EQ(log.all().front().incident.message, "m0");
  EXPECT_EQ(log.all()[IncidentLog::kFirst - 1].incident.message, "m127");
  EXPECT_EQ(log.all()[IncidentLog::kFirst].incident.message, "m700");
  const size_t newest = kept - IncidentLog::kFirst - 1;
  EXPECT_EQ(log.all()[IncidentLog::kFirst + 1].incident.message,
            "m" + std::to_string(kMany - static_cast<int>(newest)));
  EXPECT_EQ(log.all().back().incident.message, "m1999");
  EXPECT_EQ(log.dropped(), kMany - static_cast<int64_t>(kept));
}

TEST(IncidentLog, RanksAreBounded) {
  IncidentLog log;
  constexpr int kRanks = 20'000;
  for (int rank = 0; rank < kRanks; ++rank) log.Add(Said("no", rank));
  EXPECT_EQ(log.all()[0].ranks.size(), IncidentLog::kMaxRanks);
  EXPECT_EQ(log.all()[0].times, kRanks);
}

TEST(IncidentLog, MovesAnAttempt) {
  IncidentLog log;
  log.Add(Said("a"));
  Candidate later = Said("b");
  later.attempt = 2;
  log.Add(later);
  log.MoveToAttempt(2, 1);
  EXPECT_EQ(log.all()[1].attempt, 1);
}

}  // namespace
}  // namespace rankscope::windows
