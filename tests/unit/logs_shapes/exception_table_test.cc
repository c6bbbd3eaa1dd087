// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_table.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::logs {
namespace {

struct Case {
  const char* type;
  const char* message;
  FrameKind frame;
  const char* fault;
  const char* sub;
};

class ExceptionTable : public ::testing::TestWithParam<Case> {};

TEST_P(ExceptionTable, NamesFaultClassAndSub) {
  const Case& c = GetParam();
  Incident incident;
  incident.exception_type = c.type;
  incident.message = c.message;
  incident.frame = c.frame;
  EXPECT_EQ(FaultClass(incident), c.fault) << c.type << ": " << c.message;
  EXPECT_EQ(ExceptionSub(incident), c.sub) << c.type << ": " << c.message;
}

INSTANTIATE_TEST_SUITE_P(
    Rows, ExceptionTable,
    ::testing::Values(
        Case{"ModuleNotFoundError", "No module named 'apex'", FrameKind::kImport, "env",
             "missing_module"},
        Case{"ImportError", "/l/x.so: undefined symbol: _Z3foov", FrameKind::kImport, "env",
             "missing_module"},
        Case{"AttributeError", "module 'numpy' has no attribute 'int'", FrameKind::kUnknown, "env",
             "other"},
        Case{"RuntimeError", "Found no NVIDIA driver on your system.", FrameKind::kUnknown, "env",
             "cuda_runtime"},
        Case{"FileNotFoundError", "[Errno 2] No such file or directory: 'm.bin'",
             FrameKind::kAssetLoad, "asset", "file_not_found"},
        Case{"FileNotFoundError", "[Errno 2] No such file or directory: 'rows.csv'",
             FrameKind::kDataset, "data", "file_not_found"},
        Case{"huggingface_hub.errors.GatedRepoError", "401 Client Error.", FrameKind::kAssetLoad,
             "asset", "asset_unavailable"},
        Case{"PermissionError", "[Errno 13] Permission denied: '/models'", FrameKind::kUnknown,
             "asset", "permission"},
        Case{"KeyError", "'label'", FrameKind::kDataset, "data", "key_or_index"},
        Case{"KeyError", "'warmup'", FrameKind::kConfig, "config", "key_or_index"},
        Case{"pyarrow.lib.ArrowInvalid", "JSON parse error", FrameKind::kDataset, "data",
             "bad_data"},
        Case{"UnicodeDecodeError", "'utf-8' codec can't decode byte", FrameKind::kUnknown, "data",
             "bad_data"},
        Case{"TypeError", "__init__() got an unexpected keyword argument 'evaluate'",
             FrameKind::kConfig, "config", "bad_config"},
        Case{"ValueError", "unknown scheduler", FrameKind::kUnknown, "config", "bad_config"},
        Case{"AssertionError", "hidden size", FrameKind::kConfig, "config", "assertion"},
        Case{"ZeroDivisionError", "division by zero", FrameKind::kTrainStep, "config",
             "division_by_zero"},
        Case{"RuntimeError",
             "Expected all tensors to be on the same device, but found at least two devices",
             FrameKind::kTrainStep, "config", "device_mismatch"},
        Case{"RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
             FrameKind::kTrainStep, "config", "shape_mismatch"}));

TEST(ExceptionTable, AVagueLastExceptionFollowsItsCause) {
  Incident incident;
  incident.exception_type = "hydra.errors.InstantiationException";
  incident.message = "Error locating target 'nets.Fast'";
  EXPECT_EQ(FaultClass(incident), "config");
  incident.cause_type = "ModuleNotFoundError";
  incident.cause_message = "No module named 'triton'";
  EXPECT_EQ(FaultClass(incident), "env");
}

TEST(ExceptionTable, WhatTheFirstStepTells) {
  const auto first = [](std::string message, FrameKind frame, std::string function) {
    Incident incident;
    incident.exception_type = "RuntimeError";
    incident.message = std::move(message);
    incident.frame = frame;
    incident.function = std::move(function);
    return FailsAtFirstUse(incident);
  };
  const std::string places = "Expected all tensors to be on the same device";
  EXPECT_TRUE(first(places, FrameKind::kTrainStep, "forward"));
  EXPECT_TRUE(first("mat1 and mat2 must have the same dtype, but got Half and Float",
                    FrameKind::kTrainStep, "forward"));
  EXPECT_TRUE(first("\"addmm_impl_cpu_\" not implemented for 'Half'", FrameKind::kUnknown, "step"));
  EXPECT_FALSE(first(places, FrameKind::kTrainStep, "validation_step")) << "comes later";
  EXPECT_FALSE(first(places, FrameKind::kCheckpointSave, "gather")) << "comes later";
  EXPECT_FALSE(first("The size of tensor a (31) must match the size of tensor b (32)",
                     FrameKind::kTrainStep, "forward"))
      << "the last batch may be smaller";
}

TEST(ExceptionTable, KindsWithoutAnException) {
  Incident incident;
  incident.kind = IncidentKind::kUsageError;
  EXPECT_EQ(FaultClass(incident), "config");
  EXPECT_EQ(ExceptionSub(incident), "bad_config");
  incident.kind = IncidentKind::kHostOom;
  EXPECT_EQ(ExceptionSub(incident), "host_memory");
  incident.kind = IncidentKind::kCudaError;
  EXPECT_EQ(ExceptionSub(incident), "cuda_runtime");
}

}  // namespace
}  // namespace rankscope::logs
