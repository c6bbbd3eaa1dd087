// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/source_keeper.h"

#include <gtest/gtest.h>

#include <vector>

namespace rankscope::exporter {
namespace {

// Fails a number of times, then starts; says what it is told to say about itself.
class StubbornSource final : public Source {
 public:
  StubbornSource(int failures, std::optional<Availability> own_word, bool ends_loop = true)
      : failures_(failures), own_word_(own_word), ends_loop_(ends_loop) {}

  rankscope::Status Start(EventLoop& loop, Sink& sink) override {
    ++starts;
    if (failures_-- <= 0) {
      if (ends_loop_) loop.After(Milliseconds(1), [&loop] { loop.Stop(); });
      return {};
    }
    if (own_word_) {
      Observation observation;
      SourceState state;
      state.state = *own_word_;
      state.reason = "needs a key";
      observation.kind = state;
      sink.Accept(observation);
    }
    return Error{"the door is locked; open it"};
  }
  void Stop() override { ++stops; }
  int64_t lost() const override { return losses; }

  int starts = 0;
  int stops = 0;
  int64_t losses = 5;

 private:
  int failures_;
  std::optional<Availability> own_word_;
  bool ends_loop_;
};

struct Kept {
  EventLoop loop;
  Logger log{"error", "logfmt"};
  std::vector<SourceState> told;
  SourceKeeper keeper{loop, log, "n1", [this](const Observation& o) {
                        if (const auto* s = std::get_if<SourceState>(&o.kind)) told.push_back(*s);
                      }};
};

TEST(SourceKeeper, TriesAgainAndTellsEachChangeOnce) {
  Kept k;
  auto source = std::make_unique<StubbornSource>(1, std::nullopt);
  StubbornSource& raw = *source;
  k.keeper.Add(1, "stub", Seconds(1), std::move(source), {});
  k.keeper.Start();
  EXPECT_EQ(k.keeper.Status(0)[0].state, Availability::kDown);
  k.loop.Run();  // until the second start
  EXPECT_EQ(raw.starts, 2);
  ASSERT_EQ(k.told.size(), 2u);
  EXPECT_EQ(k.told[0].state, Availability::kDown);
  EXPECT_EQ(k.told[0].reason, "the door is locked; open it");
  EXPECT_EQ(k.told[0].name, "stub");
  EXPECT_EQ(k.told[0].lost, 5);
  EXPECT_EQ(k.told[1].state, Availability::kUp);
  k.keeper.Stop();
  EXPECT_EQ(raw.stops, 1);
}

TEST(SourceKeeper, WhatIsLostIsToldWhenItBeginsAndThenFromTimeToTime) {
  Kept k;
  auto source = std::make_unique<StubbornSource>(0, std::nullopt);
  StubbornSource& raw = *source;
  raw.losses = 0;
  k.keeper.Add(1, "stub", {}, std::move(source), {});
  k.keeper.Start();
  k.keeper.TellLosses();
  ASSERT_EQ(k.told.size(), 1u) << "nothing is lost";
  raw.losses = 3;
  k.keeper.TellLosses();
  ASSERT_EQ(k.told.size(), 2u);
  EXPECT_EQ(k.told[1].lost_untold, 3);
  EXPECT_EQ(k.told[1].state, Availability::kUp);
  raw.losses = 4;
  k.keeper.TellLosses();
  EXPECT_EQ(k.told.size(), 2u) << "not each second";
  k.keeper.Stop();
}

TEST(SourceKeeper, TheSourcesOwnWordIsBetterThanDown) {
  Kept k;
  k.keeper.Add(1, "stub", {}, std::make_unique<StubbornSource>(1000, Availability::kDenied), {});
  k.keeper.Start();
  ASSERT_EQ(k.told.size(), 1u);
  EXPECT_EQ(k.told[0].state, Availability::kDenied);
  EXPECT_EQ(k.told[0].reason, "needs a key");
}

TEST(SourceKeeper, ASourceThatIsSwitchedOffSaysWhy) {
  Kept k;
  k.keeper.Add(2, "stub", {}, nullptr, "switched off: sources.stub.enabled is false");
  k.keeper.Start();
  ASSERT_EQ(k.told.size(), 1u);
  EXPECT_EQ(k.told[0].state, Availability::kNotApplicable);
  EXPECT_EQ(k.keeper.States().size(), 1u);
}

TEST(SourceKeeper, OneSourceTakesTheOthersPlaceWhileItIsUp) {
  Kept k;
  auto better = std::make_unique<StubbornSource>(1, std::nullopt);
  auto plain = std::make_unique<StubbornSource>(0, std::nullopt, false);
  StubbornSource& raw = *plain;
  k.keeper.Add(1, "plain", {}, std::move(plain), {}, "better");
  k.keeper.Add(2, "better", {}, std::move(better), {});
  k.keeper.Start();
  EXPECT_EQ(k.keeper.Status(0)[0].state, Availability::kUp) << "the better one failed at first";
  EXPECT_EQ(k.keeper.Status(0)[1].state, Availability::kDown);
  k.loop.Run();  // until the second start
  EXPECT_EQ(k.keeper.Status(0)[1].state, Availability::kUp);
  EXPECT_EQ(k.keeper.Status(0)[0].state, Availability::kNotApplicable);
  EXPECT_EQ(k.keeper.Status(0)[0].reason, "superseded by better");
  EXPECT_EQ(raw.stops, 1);
}

TEST(SourceKeeper, ASupersededSourceIsNeverStartedBesideTheOther) {
  Kept k;
  auto plain = std::make_unique<StubbornSource>(0, std::nullopt);
  StubbornSource& raw = *plain;
  k.keeper.Add(1, "plain", {}, std::move(plain), {}, "better");
  k.keeper.Add(2, "better", {}, std::make_unique<StubbornSource>(0, std::nullopt), {});
  k.keeper.Start();
  EXPECT_EQ(raw.starts, 0);
  EXPECT_EQ(k.keeper.Status(0)[0].state, Availability::kNotApplicable);
}

}  // namespace
}  // namespace rankscope::exporter
