// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finding the library, and what it says when it cannot start.
#include "exporter/gpu/nvml_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nvml/fake.h"

namespace rankscope::collectors::nvml {
namespace {

using testing::HasSubstr;

TEST(NvmlLibrary, OpensAndKnowsItsDriver) {
  const Fake fake("driver 550.54.15\ngpus 2 hopper\n");
  const Opening opening = Library::Open(FAKE_NVML);
  ASSERT_NE(opening.library, nullptr) << opening.reason;
  EXPECT_EQ(opening.state, Availability::kUp);
  EXPECT_EQ(opening.library->driver(), "550.54.15");
  uint32_t count = 0;
  EXPECT_EQ(opening.library->Call(&Functions::device_count, &count), kSuccess);
  EXPECT_EQ(count, 2u);
}

TEST(NvmlLibrary, IsNotApplicableWhereThereIsNone) {
  const Opening opening = Library::Open("/nowhere/libnvidia-ml.so.1");
  EXPECT_EQ(opening.library, nullptr);
  EXPECT_EQ(opening.state, Availability::kNotApplicable);
  EXPECT_THAT(opening.reason, HasSubstr("no NVIDIA driver"));
}

TEST(NvmlLibrary, IsUnsupportedWithoutAnyFunctionOfIt) {
  const Opening opening = Library::Open("libm.so.6");
  EXPECT_EQ(opening.library, nullptr);
  EXPECT_EQ(opening.state, Availability::kUnsupported);
}

struct Refusal {
  int error;
  Availability state;
  const char* reason;
};

class NvmlRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(NvmlRefusal, SaysWhatToMend) {
  const Fake fake("gpus 1 hopper\nerror nvmlInit_v2 " + std::to_string(GetParam().error) + "\n");
  const Opening opening = Library::Open(FAKE_NVML);
  EXPECT_EQ(opening.library, nullptr);
  EXPECT_EQ(opening.state, GetParam().state);
  EXPECT_THAT(opening.reason, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(OfInit, NvmlRefusal,
                         testing::Values(Refusal{4, Availability::kDenied, "/dev/nvidia"},
                                         Refusal{9, Availability::kDown, "modprobe nvidia"},
                                         Refusal{18, Availability::kDown, "different versions"},
                                         Refusal{28, Availability::kNotApplicable, "no NVIDIA GPU"},
                                         Refusal{999, Availability::kDown, "unknown error"},
                                         Refusal{77, Availability::kDown, "error 77"}));

TEST(NvmlLibrary, AnOlderOneLacksFunctionsAndStillOpens) {
  const Fake fake("driver 418.67\ngpus 1 ampere\n");
  const Opening opening = Library::Open(FAKE_NVML_OLD);
  ASSERT_NE(opening.library, nullptr) << opening.reason;
  EXPECT_EQ(opening.library->functions().gpm_sample, nullptr);
  EXPECT_EQ(opening.library->functions().memory_info_v2, nullptr);
  EXPECT_NE(opening.library->functions().throttle_reasons, nullptr);   // by its older name
  EXPECT_NE(opening.library->functions().compute_processes, nullptr);  // likewise
  EXPECT_EQ(opening.library->Call(&Functions::energy, Device{}, nullptr), kFunctionNotFound);
}

TEST(NvmlLibrary, WaitsForXids) {
  Fake fake("gpus 3 hopper\ngpu 2 xid 31\n");
  const Opening opening = Library::Open(FAKE_NVML);
  ASSERT_NE(opening.library, nullptr);
  const Library& library = *opening.library;
  EventSet set = nullptr;
  Device device = nullptr;
  ASSERT_EQ(library.Call(&Functions::event_set_create, &set), kSuccess);
  ASSERT_EQ(library.Call(&Functions::handle_by_index, 2u, &device), kSuccess);
  ASSERT_EQ(library.Call(&Functions::register_events, device, kEventXid, set), kSuccess);
  EventData event{};
  fake.Say("gpus 3 hopper\ngpu 2 xid 31\ngpu 0 xid 13\ngpu 2 xid 79\n");
  ASSERT_EQ(library.Call(&Functions::event_wait, set, &event, 1000u), kSuccess);
  EXPECT_EQ(event.device, device);
  EXPECT_EQ(event.type, kEventXid);
  EXPECT_EQ(event.data, 79u);
  EXPECT_EQ(library.Call(&Functions::event_wait, set, &event, 10u), kTimeout);
  EXPECT_EQ(library.Call(&Functions::event_set_free, set), kSuccess);
}

}  // namespace
}  // namespace rankscope::collectors::nvml
