// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source over a node's GPUs, on the stand-in: what one of them suffers is its own.
#include "exporter/gpu/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>

#include "tests/unit/collectors/recording_sink.h"
#include "tests/unit/nvml/fake.h"

namespace rankscope::collectors {
namespace {

using testing::AllOf;
using testing::IsEmpty;
using testing::SizeIs;

constexpr NvmlPatience kShort = {.open = Milliseconds(300),
                                 .first_look = Milliseconds(400),
                                 .look = Milliseconds(400),
                                 .retry = Milliseconds(20),
                                 .first_reopen = Milliseconds(20),
                                 .longest_reopen = Milliseconds(80),
                                 .recount = Milliseconds(50)};

class NvmlTest : public testing::Test {
 protected:
  void Start(const std::string& library = FAKE_NVML) {
    source_ = std::make_unique<Nvml>(Milliseconds(10), library, kShort);
    ASSERT_TRUE(source_->Start(loop_, sink_).ok());
  }
  ~NvmlTest() override {
    if (source_) source_->Stop();
  }
  // Runs the loop until then; false: it never came.
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
  size_t Count(GpuState state) const {
    const auto gpus = source_->gpus();
    return gpus == nullptr ? 0
                           : static_cast<size_t>(std::count_if(
                                 gpus->begin(), gpus->end(),
                                 [state](const auto& g) { return g.state == state; }));
  }
  bool Tells(Availability state, const std::string& reason) const {
    const std::vector<SourceState> states = sink_.Of<SourceState>();
    return !states.empty() && states.back().state == state &&
           states.back().reason.find(reason) != std::string::npos;
  }
  std::map<std::string, size_t> Batches() const {
    std::map<std::string, size_t> batches;
    for (const SampleBatch& batch : sink_.Of<SampleBatch>()) ++batches[batch.subject.name];
    return batches;
  }
  static std::string Uuid(int index) {
    return "GPU-fa4e000" + std::to_string(index) + "-0000-4000-8000-000000000000";
  }

  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::unique_ptr<Nvml> source_;
};

TEST_F(NvmlTest, TellsEachGpuByItsUuid) {
  const nvml::Fake fake("gpus 8 hopper\ngpu 5 power 650000\n");
  Start();
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 8; }));
  EXPECT_TRUE(Tells(Availability::kUp, ""));
  EXPECT_EQ((*source_->gpus())[5].reading.power_watts, 650);
  ASSERT_TRUE(Until([&] { return Batches().size() == 8; }));
  for (const SampleBatch& batch : sink_.Of<SampleBatch>()) {
    EXPECT_EQ(batch.subject.kind, Subject::Kind::kGpu);
    if (batch.subject.name != Uuid(5)) continue;
    EXPECT_THAT(batch.samples, testing::Contains(testing::AllOf(
                                   testing::Field(&Sample::signal, SignalId::kGpuPowerWatts),
                                   testing::Field(&Sample::value, 650.0f))));
  }
}

TEST_F(NvmlTest, AHungGpuIsAloneInIt) {
  nvml::Fake fake("gpus 8 hopper\n");
  Start();
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 8; }));
  fake.Say("gpus 8 hopper\ngpu 3 hang\n");
  ASSERT_TRUE(
      Until([&] { return Count(GpuState::kUnresponsive) == 1 && Count(GpuState::kUp) == 7; }));
  EXPECT_TRUE(Tells(Availability::kUp, "gpu 3: NVML: a call does not return"));
  EXPECT_EQ((*source_->gpus())[3].identity.uuid, Uuid(3));
  EXPECT_EQ((*source_->gpus())[3].reading.power_watts, std::nullopt);
  const auto before = Batches();
  Until([] { return false; }, Milliseconds(500));
  const auto after = Batches();
  for (const auto& [uuid, batches] : after) {
    if (uuid == Uuid(3)) {
      EXPECT_EQ(batches, before.at(uuid));
    } else {
      EXPECT_GE(batches - before.at(uuid), 5u) << uuid;  // of fifty
    }
  }
  fake.Say("gpus 8 hopper\n");
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 8; }));
  EXPECT_TRUE(Tells(Availability::kUp, ""));
}

TEST_F(NvmlTest, ALostGpuComesBack) {
  nvml::Fake fake("gpus 2 hopper\n");
  Start();
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 2; }));
  fake.Say("gpus 2 hopper\ngpu 0 lost\n");
  ASSERT_TRUE(Until([&] { return Count(GpuState::kLost) == 1; }));
  EXPECT_TRUE(Tells(Availability::kUp, "gpu 0: NVML: GPU is lost"));
  fake.Say("gpus 2 hopper\n");
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 2; }));
}

TEST_F(NvmlTest, AllLostIsDown) {
  nvml::Fake fake("gpus 2 hopper\ngpu * lost\n");
  Start();
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDown, "gpu 1"); }));
  EXPECT_THAT(sink_.Of<SampleBatch>(), IsEmpty());
}

TEST_F(NvmlTest, NoDriverIsNotApplicable) {
  Start("/nowhere/libnvidia-ml.so.1");
  ASSERT_TRUE(Until([&] { return Tells(Availability::kNotApplicable, "no NVIDIA driver"); }));
  EXPECT_EQ(source_->gpus(), nullptr);
}

TEST_F(NvmlTest, TheDriverIsLookedForAgain) {
  nvml::Fake fake("error nvmlInit_v2 9\ngpus 1 hopper\n");
  Start();
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDown, "modprobe"); }));
  fake.Say("gpus 1 hopper\n");
  ASSERT_TRUE(Until([&] { return Tells(Availability::kUp, ""); }));
}

TEST_F(NvmlTest, NoPermissionIsDenied) {
  nvml::Fake fake("error nvmlInit_v2 4\ngpus 1 hopper\n");
  Start();
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDenied, "/dev/nvidia"); }));
  fake.Say("error nvmlDeviceGetHandleByIndex_v2 4\ngpus 2 hopper\n");
  ASSERT_TRUE(Until([&] { return Tells(Availability::kDenied, "gpu 1: NVML: no permission"); }));
}

TEST_F(NvmlTest, NoGpuIsNotApplicableUntilThereIsOne) {
  nvml::Fake fake("gpus 0 hopper\n");
  Start();
  ASSERT_TRUE(Until([&] { return Tells(Availability::kNotApplicable, "no NVIDIA GPU"); }));
  EXPECT_THAT(*source_->gpus(), IsEmpty());
  fake.Say("gpus 16 ampere\n");
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 16; }));
  fake.Say("gpus 15 ampere\n");
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 15 && source_->gpus()->size() == 15; }));
}

TEST_F(NvmlTest, AnOlderDriverIsEnough) {
  const nvml::Fake fake("driver 418.67\nprocess_bytes 16\ngpus 4 ampere\n");
  Start(FAKE_NVML_OLD);
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUp) == 4; }));
  EXPECT_TRUE(Tells(Availability::kUp, ""));
}

TEST_F(NvmlTest, AGpuThatHangsFromTheStartIsTold) {
  nvml::Fake fake("gpus 2 hopper\ngpu 1 hang\n");
  Start();
  ASSERT_TRUE(
      Until([&] { return Count(GpuState::kUnresponsive) == 1 && Count(GpuState::kUp) == 1; }));
  EXPECT_EQ((*source_->gpus())[1].identity.index, 1);
  EXPECT_EQ((*source_->gpus())[1].identity.uuid, "");
  source_->Stop();  // and ends, though it hangs
}

TEST_F(NvmlTest, EndsSoonHoweverManyHang) {
  const nvml::Fake fake("gpus 16 hopper\ngpu * hang\n");
  Start();
  ASSERT_TRUE(Until([&] { return Count(GpuState::kUnresponsive) == 16; }));
  const auto begin = std::chrono::steady_clock::now();
  source_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));  // not 16 waits
}

TEST(NvmlSamples, CountersBeginWithTheFirstLookAndNeverFall) {
  nvml::Samples samples;
  GpuStatus gpu;
  gpu.identity.uuid = "GPU-1";
  const auto joules = [&](double energy) {
    gpu.reading.energy_joules = energy;
    const SampleBatch batch = samples.Of(gpu);
    EXPECT_THAT(batch.samples, SizeIs(1));
    return batch.samples.at(0).value;
  };
  EXPECT_EQ(joules(3e12), 0);
  EXPECT_EQ(joules(3e12 + 700), 700);
  EXPECT_EQ(joules(100), 800);  // the driver was loaded anew
  gpu.reading.energy_joules.reset();
  EXPECT_THAT(samples.Of(gpu).samples, IsEmpty());
  EXPECT_EQ(joules(150), 850);
}

TEST(NvmlSamples, ErrorsKeepTheirValue) {
  nvml::Samples samples;
  GpuStatus gpu;
  gpu.reading.ecc_total[1][0] = 5;
  gpu.reading.nvlink_errors = {2, std::nullopt, 3, std::nullopt, std::nullopt};
  const SampleBatch batch = samples.Of(gpu);
  ASSERT_THAT(batch.samples, SizeIs(2));
  EXPECT_EQ(batch.samples[0].signal, SignalId::kEccUncorrected);
  EXPECT_EQ(batch.samples[0].value, 5);
  EXPECT_EQ(batch.samples[1].signal, SignalId::kNvlinkErrors);
  EXPECT_EQ(batch.samples[1].value, 5);
}

TEST(NvmlSamples, SecondsOfTroubleAreCountedOnce) {
  nvml::Samples samples;
  GpuStatus gpu;
  gpu.reading.throttle_bits = 0;
  gpu.reading.throttled_seconds.fill(0);
  static_cast<void>(samples.Of(gpu));
  // Hardware slowdown is the same five seconds as the heat that it is for.
  gpu.reading.throttled_seconds[3] = 5;
  gpu.reading.throttled_seconds[6] = 5;
  gpu.reading.throttled_seconds[2] = 100;  // its power limit is no trouble
  for (const Sample& sample : samples.Of(gpu).samples) {
    if (sample.signal == SignalId::kThrottledSeconds) {
      EXPECT_EQ(sample.value, 5);
    }
  }
}

}  // namespace
}  // namespace rankscope::collectors
