// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL says of itself becomes facts, never failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/reader.h"

namespace rankscope::logs {
namespace {

struct Case {
  const char* line;
  const char* name;
  const char* text;
};

class NcclFact : public ::testing::TestWithParam<Case> {};

TEST_P(NcclFact, IsRead) {
  const Case& c = GetParam();
  Reader reader;
  LogLine line;
  line.text = c.line;
  std::string name;
  std::string text;
  for (const Record& record : reader.Feed(line, Timestamp{})) {
    EXPECT_FALSE(std::holds_alternative<Incident>(record)) << c.line;
    if (const auto* marker = std::get_if<Marker>(&record)) {
      EXPECT_EQ(marker->kind, MarkerKind::kFact);
      name = marker->name;
      text = marker->text;
    }
  }
  EXPECT_EQ(name, c.name) << c.line;
  EXPECT_EQ(text, c.text) << c.line;
}

INSTANTIATE_TEST_SUITE_P(
    Lines, NcclFact,
    ::testing::Values(
        Case{"n2:5:5 [0] NCCL INFO Bootstrap : Using ib0:10.9.0.2<0>", "nccl_interface",
             "ib0:10.9.0.2<0>"},
        Case{"n2:5:5 [0] NCCL INFO Bootstrap: Using ib0:10.9.0.2<0>", "nccl_interface",
             "ib0:10.9.0.2<0>"},
        Case{"n2:5:9 [0] NCCL INFO NET/IB : Using [0]mlx5_1:1/IB [RO]; OOB ib0:10.9.0.2<0>",
             "nccl_ib_devices", "[0]mlx5_1:1/IB [RO]"},
        Case{"n2:5:9 [0] NCCL INFO NET/IB : No device found.", "nccl_no_ib",
             "NET/IB : No device found"},
        Case{"n2:5:9 [0] NCCL INFO Using network AWS Libfabric", "nccl_network", "AWS Libfabric"},
        Case{"n2:5:9 [0] NCCL INFO NET/Plugin: Loaded net plugin IBext_v8 (v8)", "nccl_plugin",
             "IBext_v8 (v8)"},
        Case{"n2:5:9 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.14.0", "nccl_ofi_version",
             "1.14.0"},
        Case{"n2:5:9 [0] NCCL INFO 24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p "
             "channels, 32 p2p channels per peer",
             "nccl_channels", "24"},
        Case{"n2:5:9 [0] NCCL INFO GPU Direct RDMA Enabled for HCA 0 'mlx5_1'", "nccl_gdr", "on"},
        Case{"n2:5:9 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 1 / HCA 0 (distance 8 > 5)",
             "nccl_gdr", "off"},
        Case{"n2:5:9 [0] NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS "
             "16)",
             "nccl_nvls", "on"},
        Case{"n2:5:5 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.", "nccl_setting",
             "NCCL_IB_DISABLE set by environment to 1."}));

INSTANTIATE_TEST_SUITE_P(
    NearMisses, NcclFact,
    ::testing::Values(Case{"grep for 'Using network IB' in the log", "", ""},
                      Case{"OMP_NUM_THREADS set by environment to 4", "", ""},
                      Case{"GPU Direct RDMA is explained in the manual", "", ""},
                      Case{"n2:5:9 [0] NCCL INFO many coll channels, they say", "", ""}));

}  // namespace
}  // namespace rankscope::logs
