// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One look at one GPU, field by field, on the stand-in.
#include "exporter/gpu/nvml_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/unit/nvml/fake.h"

namespace rankscope::collectors::nvml {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Places in kEccKinds and kEccScopes.
constexpr size_t kCorrectedAt = 0, kUncorrectedAt = 1, kVolatileAt = 0, kAggregateAt = 1;

TEST(NvmlDevice, KnowsWhoItIs) {
  const Fake fake("driver 550.54.15\ngpus 4 hopper\n");
  const GpuStatus gpu = Looks(FAKE_NVML, 3).Next();
  EXPECT_EQ(gpu.state, GpuState::kUp);
  EXPECT_EQ(gpu.identity.index, 3);
  EXPECT_EQ(gpu.identity.uuid, "GPU-fa4e0003-0000-4000-8000-000000000000");
  EXPECT_EQ(gpu.identity.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.identity.bus_id, "00000000:30:00.0");
  EXPECT_EQ(gpu.identity.serial, "1651123010003");
  EXPECT_EQ(gpu.identity.driver, "550.54.15");
}

TEST(NvmlDevice, ReadsMemory) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 memory_total 85899345920\ngpu 0 memory_used 10737418240\n"
      "gpu 0 memory_reserved 1073741824\ngpu 0 bar1_used 4096\n");
  const GpuReading r = Looks().Next().reading;
  EXPECT_EQ(r.memory_total_bytes, 80 * kGiB);
  EXPECT_EQ(r.memory_used_bytes, 10 * kGiB);
  EXPECT_EQ(r.memory_reserved_bytes, 1 * kGiB);
  EXPECT_EQ(r.memory_free_bytes, 69 * kGiB);
  EXPECT_EQ(r.bar1_used_bytes, 4096);
}

TEST(NvmlDevice, HopperCountsWhatItsUnitsDo) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 gpu_utilization 100\ngpu 0 gpm_1 93\ngpu 0 gpm_2 50\ngpu 0 gpm_3 25\n"
      "gpu 0 gpm_5 40\ngpu 0 gpm_7 39\ngpu 0 gpm_4 3\ngpu 0 gpm_10 12\ngpu 0 gpm_20 2\n"
      "gpu 0 field_197 none\n");
  Looks looks;
  const GpuReading first = looks.Next().reading;
  EXPECT_EQ(first.engine_active, 1);  // the driver's own sample: the counters need two
  EXPECT_EQ(first.sm_active, std::nullopt);
  EXPECT_FALSE(first.gpm);
  const GpuReading r = looks.Next().reading;
  EXPECT_TRUE(r.gpm);
  EXPECT_EQ(r.engine_active, 0.93);
  EXPECT_EQ(r.sm_active, 0.5);
  EXPECT_EQ(r.sm_occupancy, 0.25);
  EXPECT_EQ(r.dram_active, 0.12);
  EXPECT_EQ(r.pipe_active[0], 0.4);
  EXPECT_EQ(r.pipe_active[1], 0.39);
  EXPECT_EQ(r.pipe_active.back(), 0.03);
  // Without a counter of bytes the rate is summed up: two MiB/s for two seconds.
  EXPECT_EQ(r.pcie_sent_bytes, 2.0 * 1024 * 1024);
  EXPECT_EQ(looks.Next().reading.pcie_sent_bytes, 4.0 * 1024 * 1024);
}

TEST(NvmlDevice, AmpereHasNoCountersOfUnitsAndSaysNoZero) {
  const Fake fake("gpus 1 ampere\ngpu 0 gpu_utilization 87\ngpu 0 memory_utilization 31\n");
  const GpuReading r = Looks().After(3).reading;
  EXPECT_FALSE(r.gpm);
  EXPECT_EQ(r.engine_active, 0.87);
  EXPECT_EQ(r.memory_busy, 0.31);
  EXPECT_EQ(r.sm_active, std::nullopt);
  EXPECT_EQ(r.sm_occupancy, std::nullopt);
  EXPECT_EQ(r.dram_active, std::nullopt);
  for (const GpuValue& pipe : r.pipe_active) EXPECT_EQ(pipe, std::nullopt);
  EXPECT_EQ(r.fabric_state, std::nullopt);
  EXPECT_EQ(r.temperature_margin_celsius, std::nullopt);
  EXPECT_EQ(r.pcie_received_bytes, std::nullopt);
}

TEST(NvmlDevice, CountsErrorsByPlace) {
  const Fake fake(
      "gpus 1 ampere\ngpu 0 ecc_0_0_2 7\ngpu 0 ecc_1_0_2 2\ngpu 0 ecc_1_0_3 1\n"
      "gpu 0 ecc_1_1_2 5\ngpu 0 remapped_uncorrectable 4\ngpu 0 remap_pending 1\n"
      "gpu 0 remap_bank_4 2\ngpu 0 field_29 3\ngpu 0 field_31 1\n");
  const GpuStatus gpu = Looks().Next();
  const GpuReading& r = gpu.reading;
  EXPECT_EQ(r.ecc_total[kCorrectedAt][kVolatileAt], 7);
  EXPECT_EQ(r.ecc_total[kUncorrectedAt][kVolatileAt], 3);
  EXPECT_EQ(r.ecc_total[kUncorrectedAt][kAggregateAt], 5);
  EXPECT_EQ(r.ecc[kUncorrectedAt][kVolatileAt][2], 2);
  EXPECT_EQ(r.ecc[kUncorrectedAt][kVolatileAt][3], 1);
  EXPECT_EQ(r.ecc[kUncorrectedAt][kVolatileAt][7], std::nullopt);  // counts no SRAM apart
  EXPECT_EQ(r.remapped_correctable, 0);
  EXPECT_EQ(r.remapped_uncorrectable, 4);
  EXPECT_EQ(r.remap_pending, 1);
  EXPECT_EQ(r.remap_failed, 0);
  EXPECT_EQ(r.remap_banks[0], 640);
  EXPECT_EQ(r.remap_banks[4], 2);
  EXPECT_EQ(r.retired_single_bit, 3);
  EXPECT_EQ(r.retired_double_bit, std::nullopt);
  EXPECT_EQ(r.retired_pending, 1);
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kDegraded);
}

TEST(NvmlDevice, ReadsLinks) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 nvlink_state_17 0\ngpu 0 nvlink_error_3_0 11\n"
      "gpu 0 nvlink_error_4_0 2\ngpu 0 field_138 4\ngpu 0 field_139 8\n");
  const GpuReading r = Looks().Next().reading;
  ASSERT_THAT(r.links, SizeIs(18));
  EXPECT_TRUE(r.links[3].up);
  EXPECT_EQ(r.links[3].errors[0], 11);
  EXPECT_EQ(r.links[3].errors[4], std::nullopt);
  EXPECT_EQ(r.links[3].bytes_per_second, 26562e6);
  EXPECT_FALSE(r.links[17].up);
  EXPECT_EQ(r.nvlink_errors[0], 13);
  EXPECT_EQ(r.nvlink_sent_bytes, 4096);
  EXPECT_EQ(r.nvlink_received_bytes, 8192);
}

TEST(NvmlDevice, SumsBytesOfLinksWhereOnlyTheyCount) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 field_138 none\ngpu 0 field_139 none\ngpu 0 field_202 100\n"
      "gpu 0 field_204_5 7\ngpu 0 nvlink_state_17 0\n");
  const GpuReading r = Looks().After(3).reading;
  EXPECT_EQ(r.nvlink_sent_bytes, 17 * 100);
  EXPECT_EQ(r.nvlink_received_bytes, 7);
}

TEST(NvmlDevice, TellsRatesOfBytesByTheHardwaresOwnAndElseByItsCounters) {
  constexpr double kMiB = 1024.0 * 1024.0;
  Fake fake(
      "gpus 1 hopper\ngpu 0 gpm_20 2\ngpu 0 gpm_21 none\ngpu 0 gpm_60 9\n"
      "gpu 0 field_197 1000\ngpu 0 field_198 1000\ngpu 0 field_138 4\ngpu 0 field_139 8\n");
  Looks looks;
  const GpuReading first = looks.Next().reading;
  for (const GpuValue& rate : {first.pcie_sent_rate, first.pcie_received_rate,
                               first.nvlink_sent_rate, first.nvlink_received_rate})
    EXPECT_EQ(rate, std::nullopt);  // of one look there is none
  fake.Say(
      "gpus 1 hopper\ngpu 0 gpm_20 2\ngpu 0 gpm_21 none\ngpu 0 gpm_60 9\n"
      "gpu 0 field_197 1500\ngpu 0 field_198 1700\ngpu 0 field_138 7\ngpu 0 field_139 8\n");
  GpuReading r = looks.Next().reading;
  EXPECT_EQ(r.pcie_sent_rate, 2 * kMiB);
  EXPECT_EQ(r.pcie_received_rate, 700);
  EXPECT_EQ(r.nvlink_sent_rate, 3 * 1024);
  EXPECT_EQ(r.nvlink_received_rate, 0);  // of data; the hardware's counts the protocol as well
  // A counter that begins anew is no negative rate, and after a GPU was away there is none.
  fake.Say(
      "gpus 1 hopper\ngpu 0 gpm_20 none\ngpu 0 gpm_21 none\ngpu 0 field_197 7\n"
      "gpu 0 field_198 none\n");
  r = looks.Next().reading;
  EXPECT_EQ(r.pcie_sent_rate, std::nullopt);
  EXPECT_EQ(r.pcie_received_rate, std::nullopt);
  fake.Say("gpus 1 hopper\ngpu 0 lost\n");
  looks.Next();
  fake.Say("gpus 1 hopper\ngpu 0 field_197 9\n");
  EXPECT_EQ(looks.Next().reading.pcie_sent_rate, std::nullopt);
}

TEST(NvmlDevice, AsksForNoRateThatWouldBlock) {
  for (const std::string_view function : kFunctionNames)
    EXPECT_EQ(function.find("PcieThroughput"), function.npos) << function;
}

TEST(NvmlDevice, ReadsViolationsAndALicence) {
  const Fake fake(
      "gpus 2 hopper\ngpu 0 violation_0 1500000000\ngpu 0 violation_4 250000000\n"
      "gpu 0 violation_5 none\ngpu 1 vgpu_licensed 1\n");
  const GpuReading r = Looks().Next().reading;
  EXPECT_EQ(r.violation_seconds[0], 1.5);
  EXPECT_EQ(r.violation_seconds[4], 0.25);
  EXPECT_EQ(r.violation_seconds[5], std::nullopt);
  EXPECT_EQ(r.vgpu_licensed, std::nullopt);  // it needs none
  EXPECT_EQ(Looks(FAKE_NVML, 1).Next().reading.vgpu_licensed, 1);
}

TEST(NvmlDevice, ReadsPowerClocksAndHeat) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 power 612500\ngpu 0 energy 5000\ngpu 0 clock_1 1755\ngpu 0 fan 30\n"
      "gpu 0 temperature 71\ngpu 0 field_82 83\ngpu 0 performance_state 2\ngpu 0 pcie_replays 9\n"
      "gpu 0 pcie_width 8\n");
  const GpuReading r = Looks().Next().reading;
  EXPECT_EQ(r.power_watts, 612.5);
  EXPECT_EQ(r.energy_joules, 5);
  EXPECT_THAT(r.power_limit_watts, ElementsAre(700, 700, 700));
  EXPECT_EQ(r.clock_hertz[1], 1755e6);
  EXPECT_EQ(r.clock_max_hertz[1], 1980e6);
  EXPECT_EQ(r.temperature_celsius, 71);
  EXPECT_EQ(r.memory_temperature_celsius, 83);
  EXPECT_EQ(r.temperature_margin_celsius, 53);
  EXPECT_THAT(r.temperature_threshold_celsius, ElementsAre(92, 89, 95));
  EXPECT_EQ(r.fan_ratio, 0.3);
  EXPECT_EQ(r.performance_state, 2);
  EXPECT_EQ(r.pcie_replays, 9);
  EXPECT_EQ(r.pcie_width, 8);
  EXPECT_EQ(r.pcie_width_max, 16);
  EXPECT_EQ(r.fabric_state, 3);
  EXPECT_EQ(r.persistence_enabled, 1);
  EXPECT_EQ(r.exclusive, 0);
  EXPECT_EQ(r.mig_enabled, 0);
}

TEST(NvmlDevice, TakesThrottledTimeFromTheCardWhereItCounts) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 throttle_bits 44\ngpu 0 violation_0 1500000000\n"
      "gpu 0 field_252 2000000000\n");
  const GpuReading r = Looks().After(4).reading;
  EXPECT_EQ(r.throttle_bits, 44u);         // power cap, hardware slowdown, software thermal
  EXPECT_EQ(r.throttled_seconds[2], 1.5);  // the card's own, not the looks'
  EXPECT_EQ(r.throttled_seconds[6], 2);
  EXPECT_EQ(r.throttled_seconds[5], 0);
  EXPECT_EQ(r.throttled_seconds[3], 3);  // seen at three looks, a second each
  EXPECT_EQ(r.throttled_seconds[8], 0);
  EXPECT_EQ(r.thermal_throttled_seconds, std::nullopt);
}

TEST(NvmlDevice, TellsHeatOfAnOlderCardInOne) {
  const Fake fake("gpus 1 ampere\ngpu 0 throttle_bits 64\ngpu 0 violation_1 250000000\n");
  const GpuReading r = Looks().After(3).reading;
  EXPECT_EQ(r.thermal_throttled_seconds, 0.25);
  EXPECT_EQ(r.throttled_seconds[6], 2);  // as seen
}

TEST(NvmlDevice, SentinelsAreAbsent) {
  const Fake fake(
      "gpus 1 hopper\ngpu * memory_used 18446744073709551615\ngpu * energy 9223372036854775794\n"
      "gpu * power 4294967295\ngpu * temperature 2147483632\ngpu * field_82 9223372036854775792\n"
      "gpu * gpm_2 nan\ngpu * gpm_10 140737488355328\ngpu * performance_state 32\n"
      "gpu * ecc_1_0_2 18446744073709551615\ngpu * field_197 18446744073709551615\n"
      "gpu * gpm_20 none\ngpu * gpu_utilization 4294967295\ngpu * gpm_1 nan\n"
      "gpu 0 process 17 18446744073709551615\n");
  const GpuReading r = Looks().After(2).reading;
  EXPECT_EQ(r.memory_used_bytes, std::nullopt);
  EXPECT_EQ(r.energy_joules, std::nullopt);
  EXPECT_EQ(r.power_watts, std::nullopt);
  EXPECT_EQ(r.temperature_celsius, std::nullopt);
  EXPECT_EQ(r.memory_temperature_celsius, std::nullopt);
  EXPECT_EQ(r.sm_active, std::nullopt);
  EXPECT_EQ(r.dram_active, std::nullopt);
  EXPECT_EQ(r.engine_active, std::nullopt);
  EXPECT_EQ(r.performance_state, std::nullopt);
  EXPECT_EQ(r.ecc[kUncorrectedAt][kVolatileAt][2], std::nullopt);
  EXPECT_EQ(r.pcie_sent_bytes, std::nullopt);
  ASSERT_TRUE(r.compute_processes);
  EXPECT_EQ(r.compute_processes->front().memory_bytes, std::nullopt);
  EXPECT_EQ(r.sm_occupancy, 0);  // a true zero stays one
}

class NvmlProcesses : public testing::TestWithParam<int> {};

TEST_P(NvmlProcesses, AreReadWhateverTheirEntriesAreLong) {
  Fake fake("gpus 1 hopper\nprocess_bytes " + std::to_string(GetParam()) +
            "\ngpu 0 process 4711 8589934592\ngpu 0 process 4712 1073741824\n"
            "gpu 0 process 99 536870912\ngpu 0 graphics 5 1\n");
  Looks looks;
  const GpuReading r = looks.Next().reading;
  ASSERT_TRUE(r.compute_processes);
  EXPECT_THAT(*r.compute_processes,
              ElementsAre(GpuProcess{4711, 8 * kGiB, -1}, GpuProcess{4712, 1 * kGiB, -1},
                          GpuProcess{99, kGiB / 2, -1}));
  EXPECT_EQ(r.graphics_processes, 1);
  fake.Say("gpus 1 hopper\n");
  EXPECT_THAT(*looks.Next().reading.compute_processes, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(EntrySizes, NvmlProcesses, testing::Values(16, 24, 32));

TEST(NvmlDevice, KnowsItsMigParts) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 mig MIG-aaaa 1073741824 10737418240\n"
      "gpu 0 mig MIG-bbbb 0 10737418240\ngpu 0 gpu_utilization none\n");
  const GpuReading r = Looks().After(3).reading;
  EXPECT_EQ(r.mig_enabled, 1);
  ASSERT_THAT(r.mig_instances, SizeIs(2));
  EXPECT_EQ(r.mig_instances[0].uuid, "MIG-aaaa");
  EXPECT_EQ(r.mig_instances[0].memory_used_bytes, kGiB);
  EXPECT_EQ(r.mig_instances[1].memory_total_bytes, 10 * kGiB);
  EXPECT_EQ(r.engine_active, std::nullopt);
  EXPECT_EQ(r.sm_active, std::nullopt);
}

TEST(NvmlDevice, KnowsProfileNumberAndActivityOfItsMigParts) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 mig MIG-a 1 4 3g.40gb 1 gpm_1 75 gpm_5 50\n"
      "gpu 0 mig MIG-b 1 4 1c.2g.20gb 5\ngpu 0 gpu_utilization none\n");
  Looks looks;
  GpuReading r = looks.Next().reading;
  ASSERT_THAT(r.mig_instances, SizeIs(2));
  EXPECT_EQ(r.mig_instances[0].profile, "3g.40gb");
  EXPECT_EQ(r.mig_instances[0].gpu_instance, 1);
  EXPECT_EQ(r.mig_instances[0].memory_free_bytes, 3);
  EXPECT_EQ(r.mig_instances[0].engine_active, std::nullopt);  // of one sample there is none
  EXPECT_EQ(r.mig_instances[1].profile, "2g.20gb");  // of the instance that it is a part of
  r = looks.Next().reading;
  EXPECT_EQ(r.mig_instances[0].engine_active, 0.75);
  EXPECT_EQ(r.mig_instances[0].pipe_active[0], 0.5);
  EXPECT_EQ(r.mig_instances[1].engine_active, std::nullopt);
  EXPECT_EQ(r.engine_active, std::nullopt);  // the whole has none in this mode
}

TEST(NvmlDevice, SeesMigComeAndGo) {
  Fake fake("gpus 1 hopper\ngpu 0 gpm_2 50\n");
  Looks looks;
  EXPECT_EQ(looks.After(2).reading.sm_active, 0.5);
  fake.Say("gpus 1 hopper\ngpu 0 gpm_2 50\ngpu 0 mig MIG-a 1 2\n");
  EXPECT_EQ(looks.Next().reading.sm_active, std::nullopt);
  EXPECT_THAT(looks.After(10).reading.mig_instances, SizeIs(1));
  fake.Say("gpus 1 hopper\ngpu 0 gpm_2 50\n");
  EXPECT_EQ(looks.After(2).reading.sm_active, 0.5);
  EXPECT_THAT(looks.After(10).reading.mig_instances, IsEmpty());
}

TEST(NvmlDevice, AnOlderDriverHasLess) {
  const Fake fake(
      "driver 418.67\ngpus 1 ampere\nprocess_bytes 16\ngpu 0 memory_used 1073741824\n"
      "gpu 0 memory_reserved 0\ngpu 0 throttle_bits 4\ngpu 0 process 8 2048\n");
  const GpuStatus gpu = Looks(FAKE_NVML_OLD).After(2);
  EXPECT_EQ(gpu.state, GpuState::kUp);
  const GpuReading& r = gpu.reading;
  EXPECT_EQ(r.memory_used_bytes, kGiB);
  EXPECT_EQ(r.memory_reserved_bytes, std::nullopt);
  EXPECT_EQ(r.throttle_bits, 4u);
  EXPECT_EQ(r.throttled_seconds[2], 1);  // as seen: this driver counts none
  EXPECT_EQ(r.ecc_total[kUncorrectedAt][kVolatileAt], 0);
  EXPECT_EQ(r.ecc[kUncorrectedAt][kVolatileAt][2], std::nullopt);
  EXPECT_EQ(r.energy_joules, std::nullopt);
  EXPECT_THAT(*r.compute_processes, ElementsAre(GpuProcess{8, 2048, -1}));
  EXPECT_THAT(r.links, IsEmpty());
}

TEST(NvmlDevice, IsLostAndComesBack) {
  Fake fake("gpus 2 hopper\ngpu 1 power 100000\n");
  Looks looks(FAKE_NVML, 1);
  EXPECT_EQ(looks.Next().reading.power_watts, 100);
  fake.Say("gpus 2 hopper\ngpu 1 lost\n");
  const GpuStatus lost = looks.Next();
  EXPECT_EQ(lost.state, GpuState::kLost);
  EXPECT_THAT(lost.reason, HasSubstr("lost"));
  EXPECT_EQ(lost.identity.uuid, "GPU-fa4e0001-0000-4000-8000-000000000000");
  EXPECT_EQ(lost.reading.power_watts, std::nullopt);
  EXPECT_EQ(HealthOf(lost), GpuHealth::kLost);
  EXPECT_EQ(looks.After(3).state, GpuState::kLost);
  fake.Say("gpus 2 hopper\ngpu 1 power 90000\n");
  const GpuStatus back = looks.Next();
  EXPECT_EQ(back.state, GpuState::kUp);
  EXPECT_EQ(back.reading.power_watts, 90);
}

TEST(NvmlDevice, OneErrorIsOfOneValueOnly) {
  const Fake fake(
      "gpus 1 hopper\ngpu 0 error nvmlDeviceGetPowerUsage 999\n"
      "gpu 0 error nvmlDeviceGetTotalEccErrors 4\ngpu 0 error nvmlGpmSampleGet 17\n");
  const GpuStatus gpu = Looks().After(2);
  EXPECT_EQ(gpu.state, GpuState::kUp);
  EXPECT_EQ(gpu.reading.power_watts, std::nullopt);
  EXPECT_EQ(gpu.reading.ecc_total[0][0], std::nullopt);
  EXPECT_EQ(gpu.reading.sm_active, std::nullopt);
  EXPECT_EQ(gpu.reading.temperature_celsius, 34);
}

TEST(NvmlDevice, CallsAreTimedAndFailuresCounted) {
  const Fake fake("gpus 1 hopper\ngpu 0 error nvmlDeviceGetFanSpeed 999\ngpu 0 power none\n");
  const auto library = Library::Open(FAKE_NVML).library;
  DeviceReader reader(library, 0);
  reader.Look(Timestamp{Seconds(1000).ns});
  reader.Look(Timestamp{Seconds(1001).ns});
  const std::vector<LibraryCall> calls = library->calls();
  const auto of = [&calls](std::string_view function) {
    const auto found = std::find_if(calls.begin(), calls.end(), [function](const auto& call) {
      return call.function == function;
    });
    return found == calls.end() ? LibraryCall{} : *found;
  };
  const auto count = [](const LibraryCall& call) {
    return std::accumulate(call.counts.begin(), call.counts.end(), int64_t{0});
  };
  const LibraryCall fan = of("nvmlDeviceGetFanSpeed");
  EXPECT_EQ(count(fan), 2);
  ASSERT_EQ(fan.errors.size(), 1u);
  EXPECT_EQ(fan.errors[0].first, "unknown");
  EXPECT_EQ(fan.errors[0].second, 2);
  EXPECT_TRUE(of("nvmlDeviceGetPowerUsage").errors.empty());  // not supported is an answer
  EXPECT_EQ(count(of("nvmlDeviceGetPowerUsage")), 2);
  EXPECT_EQ(count(of("nvmlDeviceGetComputeRunningProcesses_v3")), 2);
  EXPECT_TRUE(of("nvmlDeviceGetMigDeviceHandleByIndex").function.empty());  // never called
}

TEST(NvmlDevice, SaysWhyItCannotBeLookedAt) {
  const Fake fake(
      "gpus 2 hopper\ngpu 0 error nvmlDeviceGetHandleByIndex_v2 4\n"
      "gpu 1 error nvmlDeviceGetHandleByIndex_v2 8\n");
  const GpuStatus denied = Looks(FAKE_NVML, 0).Next();
  EXPECT_EQ(denied.state, GpuState::kDenied);
  EXPECT_THAT(denied.reason, HasSubstr("no permission"));
  EXPECT_EQ(Looks(FAKE_NVML, 1).Next().state, GpuState::kFailed);  // no power
}

TEST(NvmlDevice, WaitsAsLongAsTheDriverDoes) {
  Fake fake("gpus 2 hopper\ngpu 0 hang nvmlDeviceGetTemperatureV\n");
  Looks looks(FAKE_NVML, 0);
  GpuStatus hung;
  std::thread thread([&] { hung = looks.Next(); });
  EXPECT_EQ(Looks(FAKE_NVML, 1).Next().state, GpuState::kUp);
  fake.Say("gpus 2 hopper\n");
  thread.join();
  EXPECT_EQ(hung.state, GpuState::kUp);
}

TEST(NvmlHealth, IsWorstFirst) {
  GpuStatus gpu;
  gpu.state = GpuState::kUp;
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kHealthy);
  gpu.reading.throttle_bits = 0x1 | 0x2 | 0x4;  // idle, set clocks and the power cap are no trouble
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kHealthy);
  gpu.reading.throttle_bits = 0x80;
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kDegraded);
  gpu.reading.remap_failed = 1;
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kUnhealthy);
  gpu.state = GpuState::kUnresponsive;
  EXPECT_EQ(HealthOf(gpu), GpuHealth::kUnresponsive);
}

}  // namespace
}  // namespace rankscope::collectors::nvml
