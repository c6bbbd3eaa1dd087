// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/signal_vote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace rankscope::run {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Timestamp At(int64_t ms) {
  return {ms * 1'000'000};
}

TEST(SignalVote, PassesOnWhatOnlyTheWrapperGot) {
  SignalVote vote;
  EXPECT_FALSE(vote.next_due());
  vote.Received(SIGTERM, At(1000));
  EXPECT_EQ(vote.next_due(), At(1050));
  EXPECT_THAT(vote.TakeDue(At(1049)), IsEmpty());
  EXPECT_THAT(vote.TakeDue(At(1050)), ElementsAre(SIGTERM));
  EXPECT_FALSE(vote.next_due());
}

TEST(SignalVote, KeepsWhatEverybodyGotInEitherOrder) {
  SignalVote vote;
  vote.Received(SIGTERM, At(1000));
  vote.GuardianReceived(SIGTERM, At(1030));
  EXPECT_THAT(vote.TakeDue(At(2000)), IsEmpty());
  vote.GuardianReceived(SIGTERM, At(3000));
  vote.Received(SIGTERM, At(3030));
  EXPECT_THAT(vote.TakeDue(At(4000)), IsEmpty());
}

TEST(SignalVote, OneVoteCountsOnce) {
  SignalVote vote;
  vote.GuardianReceived(SIGTERM, At(1000));
  vote.Received(SIGTERM, At(1001));
  vote.Received(SIGTERM, At(1002));
  EXPECT_THAT(vote.TakeDue(At(1100)), ElementsAre(SIGTERM));
}

TEST(SignalVote, AnOldVoteIsForgotten) {
  SignalVote vote;
  vote.GuardianReceived(SIGTERM, At(1000));
  vote.Received(SIGTERM, At(1501));
  EXPECT_THAT(vote.TakeDue(At(2000)), ElementsAre(SIGTERM));
}

TEST(SignalVote, DifferentSignalsKeepTheirOrder) {
  SignalVote vote;
  vote.Received(SIGUSR1, At(1000));
  vote.Received(SIGTERM, At(1010));
  vote.GuardianReceived(SIGHUP, At(1010));
  EXPECT_THAT(vote.TakeDue(At(1060)), ElementsAre(SIGUSR1, SIGTERM));
}

}  // namespace
}  // namespace rankscope::run
