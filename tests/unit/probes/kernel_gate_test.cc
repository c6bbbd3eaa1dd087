// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/kernel_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::probes {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBpf = uint64_t{1} << 39;
constexpr uint64_t kPerfmon = uint64_t{1} << 38;
constexpr uint64_t kAdmin = uint64_t{1} << 21;

KernelFacts GoodKernel() {
  KernelFacts facts;
  facts.release = "6.1.0-51-cloud-amd64";
  facts.architecture = "x86_64";
  facts.btf = true;
  facts.lockdown = "integrity";
  facts.capabilities = kBpf | kPerfmon;
  facts.perf_paranoid = 2;
  facts.uprobes = true;
  return facts;
}

std::string Obstacle(const KernelFacts& facts) {
  const auto row = ObstacleForTracepoints(JudgeKernel(facts));
  return row ? row->text : std::string();
}

Capability Row(const KernelFacts& facts, std::string_view name) {
  for (const Capability& row : JudgeKernel(facts)) {
    if (row.name == name) return row;
  }
  return {};
}

TEST(KernelGate, TwoCapabilitiesAreEnoughForTracepoints) {
  EXPECT_EQ(Obstacle(GoodKernel()), "");
  KernelFacts root = GoodKernel();
  root.capabilities = kAdmin;
  EXPECT_EQ(Obstacle(root), "");
}

TEST(KernelGate, EachObstacleIsNamedWithItsRemedy) {
  KernelFacts facts = GoodKernel();
  facts.release = "5.4.0-42-generic";
  EXPECT_THAT(Obstacle(facts), HasSubstr("5.4.0-42-generic"));
  facts = GoodKernel();
  facts.btf = false;
  EXPECT_THAT(Obstacle(facts), HasSubstr("CONFIG_DEBUG_INFO_BTF"));
  facts = GoodKernel();
  facts.lockdown = "confidentiality";
  EXPECT_THAT(Obstacle(facts), HasSubstr("lockdown=integrity"));
  facts = GoodKernel();
  facts.own_pid_namespace = true;
  EXPECT_THAT(Obstacle(facts), HasSubstr("hostPID"));
  facts = GoodKernel();
  facts.capabilities = kBpf;  // one of the two
  EXPECT_THAT(Obstacle(facts), HasSubstr("CAP_PERFMON"));
}

TEST(KernelGate, WhatTheKernelRefusesAndWhatWeMayNotAreToldApart) {
  KernelFacts facts = GoodKernel();
  facts.capabilities = 0;
  EXPECT_TRUE(ObstacleForTracepoints(JudgeKernel(facts))->denied);
  facts.btf = false;
  EXPECT_FALSE(ObstacleForTracepoints(JudgeKernel(facts))->denied);
}

TEST(KernelGate, UprobesNeedMoreRightsOnOldKernels) {
  KernelFacts facts = GoodKernel();
  EXPECT_EQ(Row(facts, "ebpf.uprobes").state, "no");
  EXPECT_THAT(Row(facts, "ebpf.uprobes").text, HasSubstr("CAP_SYS_ADMIN"));
  facts.capabilities |= kAdmin;
  EXPECT_EQ(Row(facts, "ebpf.uprobes").state, "yes");
  EXPECT_FALSE(ObstacleForUprobes(JudgeKernel(facts)));
  facts.capabilities = kBpf | kPerfmon;
  facts.release = "6.12.95+deb12-cloud-amd64";
  EXPECT_EQ(Row(facts, "ebpf.uprobes").state, "yes");
  facts.release = "6.13.1";
  EXPECT_EQ(Row(facts, "ebpf.uprobes").state, "yes");
  EXPECT_THAT(Row(facts, "ebpf.uprobes").text, HasSubstr("64 bytes of stack"));
  facts.release = "5.10.0-30-amd64";
  EXPECT_THAT(ObstacleForUprobes(JudgeKernel(facts))->text, HasSubstr("5.15 or later"));
}

TEST(KernelGate, WhatForbidsTracepointsForbidsUprobesForTheSameReason) {
  KernelFacts facts = GoodKernel();
  facts.btf = false;
  EXPECT_THAT(ObstacleForUprobes(JudgeKernel(facts))->text, HasSubstr("CONFIG_DEBUG_INFO_BTF"));
}

TEST(KernelGate, VersionsAreComparedAsNumbers) {
  KernelFacts facts = GoodKernel();
  EXPECT_EQ(Row(facts, "ebpf.multi").state, "no");
  facts.release = "6.10.2";
  EXPECT_EQ(Row(facts, "ebpf.multi").state, "yes");
}

TEST(KernelGate, PerfEventParanoidIsPrinted) {
  KernelFacts facts = GoodKernel();
  facts.capabilities = kBpf;
  EXPECT_EQ(Row(facts, "ebpf.perf_events").state, "no");
  EXPECT_THAT(Row(facts, "ebpf.perf_events").text, HasSubstr("perf_event_paranoid is 2"));
  facts.perf_paranoid = -1;
  EXPECT_EQ(Row(facts, "ebpf.perf_events").state, "yes");
}

}  // namespace
}  // namespace rankscope::probes
