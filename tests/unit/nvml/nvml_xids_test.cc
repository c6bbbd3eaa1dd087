// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Xids that the driver's library tells of, on the stand-in; and what shows that a card was reset.
#include "exporter/gpu/nvml_xids.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "exporter/gpu/nvml.h"
#include "exporter/gpu/nvml_reset.h"
#include "tests/unit/collectors/recording_sink.h"
#include "tests/unit/nvml/fake.h"

namespace rankscope::collectors {
namespace {

using Teller = XidLedger::Teller;

constexpr NvmlPatience kShort = {.open = Milliseconds(300),
                                 .first_look = Milliseconds(400),
                                 .look = Milliseconds(400),
                                 .retry = Milliseconds(20),
                                 .first_reopen = Milliseconds(20),
                                 .longest_reopen = Milliseconds(80),
                                 .recount = Milliseconds(50),
                                 .listen = Milliseconds(30),
                                 .log = Milliseconds(100)};
constexpr char kThird[] = "0000:28:00";  // the card of "gpu 2"

class NvmlXids : public testing::Test {
 protected:
  void Start(const std::string& library = FAKE_NVML) {
    source_ = std::make_unique<Nvml>(Milliseconds(10), library, kShort,
                                     std::make_shared<ProcessTable>(), xids_);
    ASSERT_TRUE(source_->Start(loop_, sink_).ok());
  }
  void StartAndHear(int cards) {
    Start();
    ASSERT_TRUE(Until([&] {
      const auto gpus = source_->gpus();
      return xids_->heard(Teller::kLibrary) && gpus && gpus->size() == static_cast<size_t>(cards);
    }));
  }
  ~NvmlXids() override {
    if (source_) source_->Stop();
  }
  bool Until(const std::function<bool()>& condition, Duration patience = Seconds(10)) {
    bool met = false;
    const auto look = loop_.Every(Milliseconds(5), [&] {
      met = condition();
      if (met) loop_.Stop();
    });
    const auto end = loop_.After(patience, [&] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(look);
    loop_.Cancel(end);
    return met;
  }
  void Wait(Duration time) {
    Until([] { return false; }, time);
  }
  std::vector<KernelEvent> Told() const { return sink_.Of<KernelEvent>(); }
  int64_t CountOf(int32_t code) const {
    for (const XidCount& xid : source_->xids().counts) {
      if (xid.code == code) return xid.count;
    }
    return 0;
  }

  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::shared_ptr<XidLedger> xids_ = std::make_shared<XidLedger>();
  std::unique_ptr<Nvml> source_;
};

TEST_F(NvmlXids, AreToldWhereNobodyReadsTheLog) {
  nvml::Fake fake("gpus 4 hopper\ngpu 1 xid 31\n");
  StartAndHear(4);
  fake.Say("gpus 4 hopper\ngpu 1 xid 31\ngpu 2 xid 79\ngpu 2 xid 79\n");
  ASSERT_TRUE(Until([&] { return CountOf(79) == 2; }));
  ASSERT_EQ(Told().size(), 1u) << "one a second; what was before is not told";
  EXPECT_EQ(Told()[0].type, KernelEventType::kXid);
  EXPECT_EQ(Told()[0].code, 79);
  EXPECT_EQ(Told()[0].gpu_bus_id, kThird);
  EXPECT_EQ(Told()[0].text, "");
  EXPECT_TRUE(source_->xids().heard);
  EXPECT_EQ(source_->xids().pending.size(), 1u);
}

TEST_F(NvmlXids, TheLinesOfTheLogGoFirst) {
  nvml::Fake fake("gpus 4 hopper\n");
  StartAndHear(4);
  xids_->SetHeard(Teller::kKernelLog, true);
  // The log has it already.
  xids_->Add(Teller::kKernelLog, {kThird, 95}, loop_.Now());
  fake.Say("gpus 4 hopper\ngpu 2 xid 95\n");
  Wait(Milliseconds(300));
  EXPECT_EQ(CountOf(95), 1);
  EXPECT_EQ(Told().size(), 0u);
  // It comes a little later.
  fake.Say("gpus 4 hopper\ngpu 2 xid 95\ngpu 2 xid 48\n");
  ASSERT_TRUE(Until([&] { return CountOf(48) == 1; }));
  EXPECT_FALSE(xids_->Add(Teller::kKernelLog, {kThird, 48}, loop_.Now()));
  Wait(Milliseconds(300));
  EXPECT_EQ(CountOf(48), 1);
  EXPECT_EQ(Told().size(), 0u);
  // It does not come.
  fake.Say("gpus 4 hopper\ngpu 2 xid 95\ngpu 2 xid 48\ngpu 2 xid 62\n");
  ASSERT_TRUE(Until([&] { return Told().size() == 1; }));
  EXPECT_EQ(Told()[0].code, 62);
}

TEST_F(NvmlXids, OfTheOthersWhenOneIsLostAndOfItWhenItIsBack) {
  const std::string begin = "gpus 4 hopper\n";
  nvml::Fake fake(begin);
  StartAndHear(4);
  fake.Say(begin + "gpu 0 xid 79\ngpu 0 lost\n");
  ASSERT_TRUE(Until([&] { return CountOf(79) == 1; })) << "that it is lost comes behind it";
  ASSERT_TRUE(Until([&] { return (*source_->gpus())[0].state == GpuState::kLost; }));
  ASSERT_TRUE(Until([&] { return xids_->heard(Teller::kLibrary); }));
  Wait(Milliseconds(100));
  fake.Say(begin + "gpu 0 xid 79\ngpu 0 lost\ngpu 2 xid 48\n");
  ASSERT_TRUE(Until([&] { return CountOf(48) == 1; }));
  fake.Say(begin + "gpu 0 xid 79\ngpu 2 xid 48\n");
  ASSERT_TRUE(Until([&] { return (*source_->gpus())[0].state == GpuState::kUp; }));
  Wait(Milliseconds(200));
  fake.Say(begin + "gpu 0 xid 79\ngpu 2 xid 48\ngpu 0 xid 31\n");
  ASSERT_TRUE(Until([&] { return CountOf(31) == 1; }));
  EXPECT_EQ(CountOf(79), 1);
}

TEST_F(NvmlXids, AWaitThatHangsHoldsNothingElseUp) {
  nvml::Fake fake("gpus 2 hopper\n");
  StartAndHear(2);
  fake.Say("gpus 2 hopper\ngpu 1 hang nvmlEventSetWait_v2\ngpu 0 power 612000\n");
  ASSERT_TRUE(Until([&] { return (*source_->gpus())[0].reading.power_watts == 612; }));
  ASSERT_TRUE(Until([&] { return !xids_->heard(Teller::kLibrary); })) << "nobody tells now";
  EXPECT_EQ((*source_->gpus())[1].state, GpuState::kUp);
  const auto begin = std::chrono::steady_clock::now();
  source_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(NvmlXids, OlderLibrariesAndCardsThatCannotAreNotHeard) {
  nvml::Fake fake("driver 418.67\nprocess_bytes 16\ngpus 2 ampere\n");
  Start(FAKE_NVML_OLD);
  ASSERT_TRUE(Until([&] { return source_->gpus() && source_->gpus()->size() == 2; }));
  Wait(Milliseconds(100));
  EXPECT_FALSE(source_->xids().heard);
  source_->Stop();
  fake.Say("gpus 2 hopper\ngpu * event_types none\n");
  Start();
  ASSERT_TRUE(Until([&] { return source_->gpus() && source_->gpus()->size() == 2; }));
  Wait(Milliseconds(100));
  EXPECT_FALSE(source_->xids().heard);
}

TEST(XidListener, ABurstIsBounded) {
  nvml::Fake fake("gpus 1 hopper\n");
  nvml::XidListener listener(nvml::Library::Open(FAKE_NVML).library);
  EXPECT_TRUE(listener.Listen(true, 1, {}).listens);
  std::string many = "gpus 1 hopper\n";
  for (int i = 0; i < 1500; ++i) many += "gpu 0 xid 31\n";
  fake.Say(many);
  EXPECT_EQ(listener.Listen(false, 1, Milliseconds(100)).xids.size(), nvml::XidListener::kMost);
  EXPECT_EQ(listener.Listen(false, 1, Milliseconds(100)).xids.size(), 500u);
}

class Reset : public testing::Test {
 protected:
  using Sign = nvml::ResetWatch::Sign;
  Sign Look(GpuState state, GpuValue energy, GpuValue replays, GpuValue action = std::nullopt) {
    GpuStatus gpu;
    gpu.state = state;
    if (state == GpuState::kUp) {
      gpu.reading.energy_joules = energy;
      gpu.reading.pcie_replays = replays;
      gpu.reading.recovery_action = action;
    }
    return watch_.Of(gpu);
  }
  nvml::ResetWatch watch_;
};

TEST_F(Reset, EnergyThatBeginsAnew) {
  EXPECT_EQ(Look(GpuState::kUp, 5000, 4), Sign::kNone);
  EXPECT_EQ(Look(GpuState::kUp, 5010, 4), Sign::kNone);
  EXPECT_EQ(Look(GpuState::kUp, 3, 0), Sign::kReset);
  EXPECT_EQ(Look(GpuState::kUp, 4, 0), Sign::kNone);
}

TEST_F(Reset, GoneAndBackAsIfNothingWasIsNone) {
  Look(GpuState::kUp, 5000, 4);
  Look(GpuState::kLost, {}, {});
  EXPECT_EQ(Look(GpuState::kUp, 5100, 4), Sign::kNone);
  Look(GpuState::kUnresponsive, {}, {});
  EXPECT_EQ(Look(GpuState::kUp, 5200, 4), Sign::kNone);
}

TEST_F(Reset, GoneAndBackWithNewCounters) {
  Look(GpuState::kUp, 5000, 4);
  Look(GpuState::kLost, {}, {});
  EXPECT_EQ(Look(GpuState::kUp, 2, 0), Sign::kReturned);
}

TEST_F(Reset, AnOldCardHasNoEnergy) {
  Look(GpuState::kUp, {}, 4);
  EXPECT_EQ(Look(GpuState::kUp, {}, 0), Sign::kNone) << "cleared by hand";
  Look(GpuState::kUp, {}, 4);
  Look(GpuState::kLost, {}, {});
  EXPECT_EQ(Look(GpuState::kUp, {}, 0), Sign::kReturned);
}

TEST_F(Reset, TheDriverAskedAndAsksNoMore) {
  EXPECT_EQ(Look(GpuState::kUp, 50, 4, 0), Sign::kNothingAsked);
  EXPECT_EQ(Look(GpuState::kUp, 51, 4, 1), Sign::kNone);
  EXPECT_EQ(Look(GpuState::kLost, {}, {}), Sign::kNone);
  EXPECT_EQ(Look(GpuState::kUp, 52, 4, 1), Sign::kNone);
  EXPECT_EQ(Look(GpuState::kUp, 53, 4, 0), Sign::kSettled);
  EXPECT_EQ(Look(GpuState::kUp, 54, 4, 0), Sign::kNothingAsked);
}

}  // namespace
}  // namespace rankscope::collectors
