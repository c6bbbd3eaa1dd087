// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/inspector.h"

#include <gtest/gtest.h>

namespace rankscope::reports {
namespace {

constexpr std::string_view kHead =
    R"({"header": {"id": "0xa1", "comm_name": "unknown", "rank": 3, "n_ranks": 8, "nnodes": 1},
"metadata": {"inspector_output_format_version": "v4.0", "dump_timestamp_us": 1748030377748202, "hostname": "n1", "pid": 1639453}, )";

std::string Line(std::string_view rest) {
  return std::string(kHead) + std::string(rest) + "}";
}

TEST(Inspector, ACollective) {
  const auto record = ReadInspectorLine(Line(
      R"("coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
      "coll_exec_time_us": 61974, "coll_algobw_gbs": 277.2, "coll_busbw_gbs": 485.1})"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->operation, "AllReduce");
  EXPECT_EQ(record->rank, 3);
  EXPECT_EQ(record->ranks, 8);
  EXPECT_EQ(record->pid, 1639453);
  EXPECT_EQ(record->sequence, 1407);
  EXPECT_EQ(record->bytes, 17179869184);
  EXPECT_DOUBLE_EQ(record->seconds, 0.061974);
  EXPECT_DOUBLE_EQ(record->bus_bytes_per_second, 485.1e9);
  EXPECT_FALSE(record->peer_to_peer);
  EXPECT_TRUE(record->timed_on_gpu);
}

TEST(Inspector, ATransferBetweenTwo) {
  const auto record = ReadInspectorLine(Line(
      R"("p2p_perf": {"p2p": "Send", "p2p_sn": 9, "p2p_peer": 4, "p2p_msg_size_bytes": 4096,
      "p2p_exec_time_us": 12, "p2p_timing_source": "kernel_cpu", "p2p_busbw_gbs": 0.3})"));
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->peer_to_peer);
  EXPECT_EQ(record->operation, "Send");
  EXPECT_FALSE(record->timed_on_gpu);
}

TEST(Inspector, WhatWasLostIsTold) {
  const auto record = ReadInspectorLine(Line(
      R"("dump_stats": {"coll_records": 5, "coll_dropped_since_last_dump": 12, "p2p_dropped_since_last_dump": 3})"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->dropped, 15);
  EXPECT_TRUE(record->operation.empty());
}

TEST(Inspector, OtherLinesAreNone) {
  EXPECT_FALSE(ReadInspectorLine(""));
  EXPECT_FALSE(ReadInspectorLine("step 5 loss 0.3"));
  EXPECT_FALSE(ReadInspectorLine(R"({"loss": 0.3})"));
  const std::string whole = Line(R"("coll_perf": {"coll": "AllReduce", "coll_sn": 1})");
  EXPECT_FALSE(ReadInspectorLine(
      std::string_view(whole).substr(0, whole.size() - 1)));  // still being written
}

}  // namespace
}  // namespace rankscope::reports
