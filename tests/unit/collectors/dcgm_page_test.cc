// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is read of dcgm-exporter's page, and what is made of pages that are none.
#include "exporter/gpu/dcgm_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rankscope::collectors {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

std::string Sample(const std::string& name, const std::string& value,
                   const std::string& more = "") {
  return name + "{gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA A100\"" + more +
         ",Hostname=\"n1\"} " + value + "\n";
}

GpuValue SmOf(const std::string& text) {
  const DcgmPage page = ReadDcgmPage(text);
  return page.cards.empty() ? std::nullopt : page.cards[0].values.sm_active;
}

TEST(DcgmPage, ReadsWhatTheCardsUnitsDo) {
  const DcgmPage page = ReadDcgmPage(
      "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n"
      "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" +
      Sample("DCGM_FI_DEV_POWER_USAGE", "61.2") + Sample("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "0.91") +
      Sample("DCGM_FI_PROF_SM_ACTIVE", "0.82") + Sample("DCGM_FI_PROF_SM_OCCUPANCY", "0.4") +
      Sample("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.5") +
      Sample("DCGM_FI_PROF_DRAM_ACTIVE", "0.333333") +
      Sample("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "0.01") +
      Sample("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "0.02") +
      Sample("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "0.03") +
      Sample("DCGM_FI_PROF_PCIE_TX_BYTES", "1.2e+09") +
      Sample("DCGM_FI_PROF_NVLINK_RX_BYTES", "240000000000"));
  ASSERT_THAT(page.cards, SizeIs(1));
  EXPECT_EQ(page.cards[0].uuid, "GPU-1");
  EXPECT_TRUE(page.cards[0].any);
  const GpuProfile& values = page.cards[0].values;
  EXPECT_EQ(values.engine_active, 0.91);
  EXPECT_EQ(values.sm_active, 0.82);
  EXPECT_EQ(values.sm_occupancy, 0.4);
  EXPECT_EQ(values.tensor_active, 0.5);
  EXPECT_EQ(values.dram_active, 0.333333);
  EXPECT_EQ(values.fp16_active, 0.01);
  EXPECT_EQ(values.fp32_active, 0.02);
  EXPECT_EQ(values.fp64_active, 0.03);
  EXPECT_EQ(values.pcie_sent_bytes, 1.2e9);
  EXPECT_EQ(values.pcie_received_bytes, std::nullopt);
  EXPECT_EQ(values.nvlink_received_bytes, 2.4e11);
  EXPECT_EQ(page.dcgm_samples, 11);
  EXPECT_EQ(page.malformed, 0);
}

TEST(DcgmPage, TakesEveryNameOfTheUuid) {
  for (const char* label : {"UUID", "gpu_uuid", "uuid"}) {
    const DcgmPage page = ReadDcgmPage("DCGM_FI_PROF_SM_ACTIVE{ gpu = \"3\" , " +
                                       std::string(label) + "=\"GPU-3\", } 0.5 1700000000000\n");
    ASSERT_THAT(page.cards, SizeIs(1)) << label;
    EXPECT_EQ(page.cards[0].values.sm_active, 0.5);
  }
}

TEST(DcgmPage, APartIsNotTheCard) {
  const DcgmPage page = ReadDcgmPage(
      Sample("DCGM_FI_PROF_SM_ACTIVE", "0.9", ",GPU_I_PROFILE=\"3g.20gb\",GPU_I_ID=\"1\"") +
      Sample("DCGM_FI_PROF_NVLINK_TX_BYTES", "9", ",nvlink=\"2\""));
  EXPECT_THAT(page.cards, IsEmpty());
  EXPECT_EQ(page.part_samples, 2);
  EXPECT_EQ(SmOf(Sample("DCGM_FI_PROF_SM_ACTIVE", "0.9", ",GPU_I_ID=\"\"")), 0.9);
}

TEST(DcgmPage, WhatIsNoRatioIsAbsent) {
  for (const char* value : {"NaN", "nan", "+Inf", "-Inf", "-0.1", "91", "9223372036854775794",
                            "140737488355328", "1e999"}) {
    EXPECT_EQ(SmOf(Sample("DCGM_FI_PROF_SM_ACTIVE", value)), std::nullopt) << value;
  }
  EXPECT_EQ(SmOf(Sample("DCGM_FI_PROF_SM_ACTIVE", "0")), 0);
  EXPECT_EQ(SmOf(Sample("DCGM_FI_PROF_SM_ACTIVE", "+1.000001")), 1);
}

TEST(DcgmPage, OfPodsThatShareACardTheFirstCounts) {
  EXPECT_EQ(SmOf(Sample("DCGM_FI_PROF_SM_ACTIVE", "0.5", ",pod=\"a\"") +
                 Sample("DCGM_FI_PROF_SM_ACTIVE", "0.5", ",pod=\"b\"")),
            0.5);
}

TEST(DcgmPage, EscapesDoNotEndAValue) {
  const DcgmPage page = ReadDcgmPage(
      "DCGM_FI_PROF_SM_ACTIVE{pod=\"a\\\"} 0.1 {UUID=\\\"GPU-9\\\"\",UUID=\"GPU-1\"} 0.75\n");
  ASSERT_THAT(page.cards, SizeIs(1));
  EXPECT_EQ(page.cards[0].uuid, "GPU-1");
  EXPECT_EQ(page.cards[0].values.sm_active, 0.75);
}

TEST(DcgmPage, CountsWhatIsNoSampleAndGoesOn) {
  const DcgmPage page = ReadDcgmPage(
      "DCGM_FI_PROF_SM_ACTIVE\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\"\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\\\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=GPU-1} 0.5\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\"} 0.5x\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\"} 0.5 now\n"
      "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-1\"} +-5\n"
      "{} 1\n"
      "\xff\xfe\n" +
      std::string(1, '\0') + "\n" + Sample("DCGM_FI_PROF_SM_ACTIVE", "0.25"));
  EXPECT_EQ(page.malformed, 10);
  EXPECT_EQ(page.samples, 1);
  ASSERT_THAT(page.cards, SizeIs(1));
  EXPECT_EQ(page.cards[0].values.sm_active, 0.25);
}

TEST(DcgmPage, NoMoreCardsThanANodeHas) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "DCGM_FI_PROF_SM_ACTIVE{UUID=\"GPU-" + std::to_string(i) + "\"} 0.5\n";
  }
  text += "DCGM_FI_PROF_SM_ACTIVE{UUID=\"" + std::string(100000, 'a') + "\"} 0.5\n";
  EXPECT_THAT(ReadDcgmPage(text).cards, SizeIs(kMaxDcgmCards));
}

TEST(DcgmPage, OtherPagesHaveNoCards) {
  const DcgmPage html = ReadDcgmPage("<!doctype html>\n<html><body>It works</body></html>\n");
  EXPECT_EQ(html.samples, 0);
  const DcgmPage other = ReadDcgmPage("node_load1 0.21\nnode_cpu_seconds_total{cpu=\"0\"} 12.5\n");
  EXPECT_EQ(other.samples, 2);
  EXPECT_EQ(other.dcgm_samples, 0);
}

TEST(DcgmPage, TheMarkChangesWithAnyValueAndNotWithTheTime) {
  const auto mark = [](const std::string& power, const std::string& time) {
    return ReadDcgmPage(Sample("DCGM_FI_PROF_SM_ACTIVE", "0") +
                        Sample("DCGM_FI_DEV_POWER_USAGE", power + time))
        .cards[0]
        .mark;
  };
  EXPECT_NE(mark("61.2", ""), mark("61.3", ""));
  EXPECT_EQ(mark("61.2", " 1700000000000"), mark("61.2", " 1700000010000"));
}

}  // namespace
}  // namespace rankscope::collectors
