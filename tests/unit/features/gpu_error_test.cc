// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/gpu_error.h"

#include <gtest/gtest.h>

namespace rankscope::features {
namespace {

GpuErrorOwner Owner(logs::IncidentKind kind, std::string key, std::string value) {
  logs::Incident incident;
  incident.kind = kind;
  incident.fields = {{std::move(key), std::move(value)}};
  return OwnerOfGpuError(incident);
}
GpuErrorOwner Xid(std::string code) {
  return Owner(logs::IncidentKind::kXid, "code", std::move(code));
}
GpuErrorOwner Cuda(std::string error) {
  return Owner(logs::IncidentKind::kCudaError, "error", std::move(error));
}

TEST(GpuError, XidsByWhoCanCauseThem) {
  for (const char* code : {"48", "63", "64", "74", "79", "94", "95", "119"})
    EXPECT_EQ(Xid(code), std::string(code) == "63"    ? GpuErrorOwner::kNone
                         : std::string(code) == "119" ? GpuErrorOwner::kDriver
                                                      : GpuErrorOwner::kHardware)
        << code;
  for (const char* code : {"44", "46", "62", "109", "120"})
    EXPECT_EQ(Xid(code), GpuErrorOwner::kDriver) << code;
  for (const char* code : {"1", "9", "999", "-5"})
    EXPECT_EQ(Xid(code), GpuErrorOwner::kUndecided) << "not in the catalogue: " << code;
  for (const char* code : {"13", "31", "68"}) EXPECT_EQ(Xid(code), GpuErrorOwner::kProgram) << code;
  for (const char* code : {"43", "45", "154"}) EXPECT_EQ(Xid(code), GpuErrorOwner::kNone) << code;
  EXPECT_EQ(Xid("x"), GpuErrorOwner::kUndecided);
  EXPECT_EQ(Xid(""), GpuErrorOwner::kUndecided);
}

TEST(GpuError, CudaErrorsByTheirNames) {
  EXPECT_EQ(Cuda("ecc_uncorrectable"), GpuErrorOwner::kHardware);
  EXPECT_EQ(Cuda("illegal_address"), GpuErrorOwner::kProgram);
  EXPECT_EQ(Cuda("no_kernel_image"), GpuErrorOwner::kEnvironment);
  EXPECT_EQ(Cuda("unknown"), GpuErrorOwner::kUndecided);
}

TEST(GpuError, NothingElseIsOne) {
  EXPECT_EQ(Owner(logs::IncidentKind::kCudaOom, "error", "ecc_uncorrectable"),
            GpuErrorOwner::kNone);
  EXPECT_EQ(OwnerOfGpuError({}), GpuErrorOwner::kNone);
}

}  // namespace
}  // namespace rankscope::features
