// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Memory, storage and GPUs in the words of stacks beside PyTorch's, each beside words that are
// none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DeviceMemory, MindSporeOnADevice) {
  const auto got = RunAll(
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 166, in <module>\n"
      "    model.train(epochs, data)\n"
      "RuntimeError: Device(id:3) memory isn't enough and alloc failed, kernel name: "
      "Default/Conv2D-op1021, alloc size: 2147483648B.\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
  EXPECT_EQ(Field(got[0], "requested"), "2147483648");
}

TEST(DeviceMemory, MindSporeOnTheHost) {
  const auto got = RunAll("RuntimeError: Memory isn't enough and alloc failed, kernel name: Add.");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kHostOom);
}

TEST(DeviceMemory, TritonsDriverAndItsSharedMemory) {
  const auto got = RunAll("RuntimeError: Triton Error [CUDA]: out of memory");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
  const auto shared = RunAll(
      "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 270336, "
      "Hardware limit: 232448.");
  for (const Incident& incident : shared) EXPECT_NE(incident.kind, IncidentKind::kCudaOom);
}

struct PathCase {
  const char* line;
  const char* error;  // empty: no storage
};

class Endpoint : public ::testing::TestWithParam<PathCase> {};

TEST_P(Endpoint, IsStorageOfAPathOnly) {
  const PathCase& c = GetParam();
  std::string_view error;
  for (const Incident& incident : RunAll(c.line)) {
    if (incident.kind == IncidentKind::kStorage) error = Field(incident, "errno");
    EXPECT_EQ(error, c.error) << c.line;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Words, Endpoint,
    ::testing::Values(
        PathCase{"OSError: [Errno 107] Transport endpoint is not connected: '/gcs/set/17.tar'",
                 "ENOTCONN"},
        PathCase{"OSError: [Errno 108] Cannot send after transport endpoint shutdown: "
                 "'/lustre/ckpt/9.pt'",
                 "ESHUTDOWN"},
        PathCase{"ls: cannot access '/mnt/s3': Transport endpoint is not connected", "ENOTCONN"},
        PathCase{"bash: /mnt/s3/run.sh: Transport endpoint is not connected", "ENOTCONN"},
        PathCase{"OSError: [Errno 107] Transport endpoint is not connected", ""},
        PathCase{"grpc: ipv4:10.0.0.1:443: Transport endpoint is not connected", ""},
        PathCase{"[node1:71] UCX  ERROR sendmsg: Cannot send after transport endpoint shutdown",
                 ""}));

TEST(ContainerBanner, IsNoErrorOfTheRun) {
  EXPECT_THAT(RunAll("  [[Forward compatibility was attempted on non supported HW "
                     "(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) cuInit()=804]]"),
              IsEmpty());
  EXPECT_THAT(RunAll("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward "
                     "compatibility was attempted on non supported HW"),
              SizeIs(1));
  EXPECT_THAT(RunAll("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is "
                     "detected"),
              SizeIs(1));
}

TEST(Smi, GetsNoAnswerFromAGpu) {
  for (const char* line :
       {"Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error",
        "Unable to determine the device handle for GPU3: 0000:5F:00.0: Unknown Error",
        "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.  Reboot the "
        "system to recover this GPU"}) {
    const auto got = RunAll(line);
    ASSERT_THAT(got, SizeIs(1)) << line;
    EXPECT_EQ(got[0].shape, "smi_lost");
    EXPECT_EQ(Field(got[0], "error"), "gpu_lost");
    EXPECT_THAT(Field(got[0], "bus_id"), testing::AnyOf("0000:c1:00", "0000:5f:00")) << line;
  }
  EXPECT_THAT(RunAll("Unable to determine the device handle for GPU 0000:01:00.0: Not Found"),
              IsEmpty());
}

}  // namespace
}  // namespace rankscope::logs
