// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the libraries' own words say, each beside a near miss that reads alike and is another's.
#include <gtest/gtest.h>

#include "detectors/logs/failures/exception_rows.h"
#include "detectors/logs/failures/exception_table.h"

namespace rankscope::logs {
namespace {

struct Case {
  const char* type;
  const char* message;
  FrameKind frame;
  const char* fault;
  const char* sub;
};

class ExceptionWords : public ::testing::TestWithParam<Case> {};

TEST_P(ExceptionWords, NameFaultClassAndSub) {
  const Case& c = GetParam();
  Incident incident;
  incident.exception_type = c.type;
  incident.message = c.message;
  incident.frame = c.frame;
  EXPECT_EQ(FaultClass(incident), c.fault) << c.type << ": " << c.message;
  EXPECT_EQ(ExceptionSub(incident), c.sub) << c.type << ": " << c.message;
}

constexpr FrameKind kNowhere = FrameKind::kUnknown;

INSTANTIATE_TEST_SUITE_P(
    Environment, ExceptionWords,
    ::testing::Values(
        Case{"OSError",
             "libcusparse.so.12: cannot open shared object file: No such file or "
             "directory",
             kNowhere, "env", "missing_module"},
        // Near miss: a file of the run's own.
        Case{"OSError", "[Errno 2] No such file or directory: 'runs/vocab.model'",
             FrameKind::kAssetLoad, "asset", "file_not_found"},
        Case{"ImportError", "/lib/libc.so.6: version `GLIBC_2.32' not found", FrameKind::kImport,
             "env", "missing_module"},
        Case{"ImportError", "libstdc++.so.6: version `CXXABI_1.3.15' not found", kNowhere, "env",
             "missing_module"},
        Case{"RuntimeError",
             "module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000",
             kNowhere, "env", "missing_module"},
        Case{"ValueError",
             "numpy.ndarray size changed, may indicate binary incompatibility. Expected 96 from C "
             "header, got 80 from PyObject",
             kNowhere, "env", "missing_module"},
        Case{"TypeError", "Descriptors cannot be created directly.", FrameKind::kImport, "env",
             "missing_module"},
        Case{"RuntimeError",
             "The NVIDIA driver on your system is too old (found version 11040). Please update",
             kNowhere, "env", "cuda_runtime"},
        Case{"RuntimeError",
             "CUDA unknown error - this may be due to an incorrectly set up environment", kNowhere,
             "env", "cuda_runtime"},
        Case{"AssertionError", "Torch not compiled with CUDA enabled", FrameKind::kTrainStep, "env",
             "cuda_runtime"},
        Case{"pynvml.NVMLError_LibRmVersionMismatch", "Driver/library version mismatch", kNowhere,
             "env", "cuda_runtime"},
        Case{"RuntimeError",
             "cuDNN version incompatibility: PyTorch was compiled  against (9, 1, 0) but found "
             "runtime version (8, 9, 4)",
             kNowhere, "env", "cuda_runtime"},
        Case{"RuntimeError", "FlashAttention only supports Ampere GPUs or newer.",
             FrameKind::kTrainStep, "env", "cuda_runtime"},
        Case{"RuntimeError", "Error building extension 'fused_rotary'", FrameKind::kImport, "env",
             "missing_module"},
        Case{"RuntimeError",
             "The detected CUDA version (11.3) mismatches the version that was used to compile "
             "PyTorch (12.1).",
             kNowhere, "env", "cuda_runtime"},
        Case{"OSError",
             "CUDA_HOME environment variable is not set. Please set it to your CUDA "
             "install root.",
             kNowhere, "env", "cuda_runtime"},
        Case{"deepspeed.ops.op_builder.builder.CUDAMismatchException", ">- DeepSpeed Op Builder",
             kNowhere, "env", "cuda_runtime"},
        Case{"RuntimeError", "CUDA Setup failed despite GPU being available.", FrameKind::kImport,
             "env", "cuda_runtime"},
        Case{"AssertionError", "libcuda.so cannot found!", FrameKind::kTrainStep, "env",
             "assertion"},
        Case{"RuntimeError",
             "Failed to find C compiler. Please specify via CC environment "
             "variable.",
             FrameKind::kTrainStep, "env", "missing_module"},
        Case{"importlib.metadata.PackageNotFoundError", "No package metadata was found for peft",
             kNowhere, "env", "missing_module"},
        Case{"ValueError",
             "The checkpoint you are trying to load has model type `newnet` but Transformers does "
             "not recognize this architecture.",
             FrameKind::kAssetLoad, "env", "missing_module"},
        Case{"KeyError", "'newnet'", FrameKind::kImport, "env", "key_or_index"}));

INSTANTIATE_TEST_SUITE_P(
    Assets, ExceptionWords,
    ::testing::Values(
        Case{"huggingface_hub.errors.LocalEntryNotFoundError",
             "An error happened while trying to locate the file on the Hub and we cannot find the "
             "requested files in the local cache.",
             FrameKind::kAssetLoad, "asset", "asset_unavailable"},
        Case{"huggingface_hub.errors.HfHubHTTPError",
             "503 Server Error: Service Temporarily Unavailable for url: https://hub.example/x",
             FrameKind::kAssetLoad, "asset", "asset_unavailable"},
        Case{"huggingface_hub.errors.OfflineModeIsEnabled",
             "Cannot reach https://hub.example/x: offline mode is enabled.", kNowhere, "asset",
             "asset_unavailable"},
        // Near miss: the tracker's server, not the model's.
        Case{"requests.exceptions.HTTPError",
             "401 Client Error: Unauthorized for url: https://api.wandb.ai/graphql", kNowhere,
             "config", "bad_config"},
        Case{"wandb.errors.errors.UsageError",
             "api_key not configured (no-tty). call wandb.login(key=[your_api_key])", kNowhere,
             "config", "bad_config"},
        Case{"safetensors_rust.SafetensorError",
             "Error while deserializing header: MetadataIncompleteBuffer", FrameKind::kAssetLoad,
             "asset", "asset_unavailable"},
        Case{"botocore.exceptions.NoCredentialsError", "Unable to locate credentials", kNowhere,
             "asset", "asset_unavailable"},
        Case{"_pickle.UnpicklingError", "invalid load key, 'v'.", FrameKind::kAssetLoad, "asset",
             "asset_unavailable"},
        // Near miss: the same type inside a data set.
        Case{"_pickle.UnpicklingError", "pickle data was truncated", FrameKind::kDataset, "data",
             "bad_data"}));

INSTANTIATE_TEST_SUITE_P(
    Data, ExceptionWords,
    ::testing::Values(
        Case{"pyarrow.lib.ArrowInvalid",
             "Parquet magic bytes not found in footer. Either the file is corrupted or this is not "
             "a parquet file.",
             FrameKind::kDataset, "data", "bad_data"},
        Case{"datasets.exceptions.DatasetGenerationError",
             "An error occurred while generating the dataset", FrameKind::kDataset, "data",
             "bad_data"},
        Case{"FileNotFoundError",
             "[Errno 2] No such file or directory: '/d/wiki_text_document.idx'", kNowhere, "data",
             "file_not_found"},
        Case{"FileNotFoundError", "Couldn't find any data file at /d/corpus.", FrameKind::kDataset,
             "data", "file_not_found"},
        // Near misses: a setting's file, a model's file.
        Case{"FileNotFoundError", "[Errno 2] No such file or directory: 'conf/large.yaml'",
             kNowhere, "config", "file_not_found"},
        Case{"FileNotFoundError", "[Errno 2] No such file or directory: 'tokenizer.model'",
             FrameKind::kDataset, "asset", "file_not_found"},
        Case{"pandas.errors.ParserError",
             "Error tokenizing data. C error: Expected 4 fields in "
             "line 9, saw 6",
             kNowhere, "data", "bad_data"},
        // Near miss: YAML has a class of that name.
        Case{"yaml.parser.ParserError", "while parsing a block mapping", kNowhere, "config",
             "bad_config"},
        Case{"ValueError", "Unknown split \"validate\". Should be one of ['train', 'test'].",
             FrameKind::kDataset, "data", "bad_data"},
        Case{"ValueError",
             "Unable to create tensor, you should probably activate truncation and/or padding with "
             "'padding=True'",
             FrameKind::kDataset, "data", "bad_data"}));

INSTANTIATE_TEST_SUITE_P(
    Settings, ExceptionWords,
    ::testing::Values(
        Case{"ValueError", "Target modules {'qkv'} not found in the base model.",
             FrameKind::kConfig, "config", "bad_config"},
        Case{"omegaconf.errors.ConfigAttributeError", "Key 'optim' is not in struct", kNowhere,
             "config", "bad_config"},
        Case{"pydantic_core._pydantic_core.ValidationError", "1 validation error for TrainArgs",
             kNowhere, "config", "bad_config"},
        Case{"deepspeed.runtime.config.DeepSpeedConfigError", "Batch-related parameters", kNowhere,
             "config", "bad_config"},
        Case{"hydra.errors.MissingConfigException", "In 'train': Could not find 'model/huge'",
             kNowhere, "config", "file_not_found"},
        Case{"KeyError", "'LOCAL_RANK'", FrameKind::kConfig, "config", "key_or_index"},
        Case{"NotImplementedError", "", FrameKind::kTrainStep, "config", "other"},
        Case{"AttributeError",
             "partially initialized module 'net' has no attribute 'Block' (most likely due to a "
             "circular import)",
             kNowhere, "config", "other"},
        Case{"triton.runtime.errors.OutOfResources",
             "out of resource: shared memory, Required: 180224, Hardware limit: 101376.",
             FrameKind::kTrainStep, "config", "cuda_runtime"}));

INSTANTIATE_TEST_SUITE_P(
    Tensors, ExceptionWords,
    ::testing::Values(
        Case{
            "RuntimeError",
            "Attempting to deserialize object on CUDA device 5 but torch.cuda.device_count() is 2.",
            FrameKind::kCheckpointLoad, "config", "device_mismatch"},
        Case{"RuntimeError",
             "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
             "False.",
             FrameKind::kCheckpointLoad, "env", "cuda_runtime"},
        Case{"RuntimeError",
             "indices should be either on cpu or on the same device as the indexed "
             "tensor (cpu)",
             FrameKind::kTrainStep, "config", "device_mismatch"},
        Case{"ValueError", "Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)",
             FrameKind::kTrainStep, "config", "device_mismatch"},
        // Near miss: a dtype, on one device.
        Case{
            "RuntimeError",
            "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be "
            "the same",
            FrameKind::kTrainStep, "config", "other"},
        Case{
            "RuntimeError",
            "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the "
            "same",
            FrameKind::kTrainStep, "config", "device_mismatch"},
        Case{"RuntimeError",
             "Given groups=1, weight of size [8, 3, 3, 3], expected input[2, 1, 28, 28] to have 3 "
             "channels, but got 1 channels instead",
             FrameKind::kTrainStep, "config", "shape_mismatch"},
        Case{"ValueError",
             "Expected more than 1 value per channel when training, got input size "
             "torch.Size([1, 64])",
             FrameKind::kTrainStep, "config", "shape_mismatch"},
        Case{"IndexError", "index out of range in self", FrameKind::kTrainStep, "config",
             "key_or_index"},
        Case{"RuntimeError", "ZeroDivisionError: integer division or modulo by zero",
             FrameKind::kTrainStep, "config", "division_by_zero"}));

TEST(ExceptionWords, FurtherLinesOfTheMessageSpeakToo) {
  Incident incident;
  incident.exception_type = "OSError";
  incident.message = "You are trying to open a restricted repository.";
  incident.frame = FrameKind::kDataset;
  EXPECT_EQ(FaultClass(incident), "data");
  incident.quotes.push_back({QuoteRole::kBelow, 10, "401 Client Error. (Request ID: 7)"});
  EXPECT_EQ(FaultClass(incident), "data") << "a line below may be anybody's";
  incident.quotes.push_back({QuoteRole::kMessage, 10, "401 Client Error. (Request ID: 7)"});
  EXPECT_EQ(FaultClass(incident), "asset");
}

TEST(ExceptionWords, AServerThatIsBusyIsTransientAndALockedOneIsNot) {
  Incident incident;
  incident.exception_type = "huggingface_hub.errors.HfHubHTTPError";
  for (const char* text : {"429 Client Error: Too Many Requests for url: https://hub.example/a",
                           "504 Server Error: Gateway Time-out for url: https://hub.example/a",
                           "HTTPSConnectionPool(host='hub.example', port=443): Read timed out."}) {
    incident.message = text;
    EXPECT_TRUE(IsTransient(incident)) << text;
  }
  for (const char* text : {"401 Client Error: Unauthorized for url: https://hub.example/a",
                           "403 Forbidden: Please enable access to public gated repositories",
                           "404 Client Error: Not Found for url: https://hub.example/a"}) {
    incident.message = text;
    EXPECT_FALSE(IsTransient(incident)) << text;
  }
}

TEST(ExceptionWords, WhatFailsAtFirstUseHadNotWorkedBefore) {
  Incident incident;
  incident.exception_type = "RuntimeError";
  incident.message = "Current CUDA Device does not support bfloat16.";
  EXPECT_TRUE(FailsAtFirstUse(incident));
  incident.message = "can't start new thread";
  EXPECT_FALSE(FailsAtFirstUse(incident));
  incident.message = "mask has the wrong type";
  EXPECT_FALSE(FailsAtFirstUse(incident));
  incident.message = "Current CUDA Device does not support bfloat16.";
  incident.kind = IncidentKind::kPeerLost;
  EXPECT_FALSE(FailsAtFirstUse(incident));
}

TEST(ExceptionWords, AnExceptionForMemoryIsARefusalAndNotAKill) {
  Incident incident;
  incident.kind = IncidentKind::kHostOom;
  EXPECT_FALSE(RefusesHostMemory(incident)) << "the kernel's or the scheduler's text";
  incident.exception_type = "MemoryError";
  EXPECT_TRUE(RefusesHostMemory(incident));
  EXPECT_EQ(ExceptionSub(incident), "host_memory");
  EXPECT_EQ(FaultClass(incident), "config");
  incident.signal = 6;
  EXPECT_FALSE(RefusesHostMemory(incident)) << "std::bad_alloc aborts";
  incident.signal = 0;
  incident.exception_type = "ray.exceptions.OutOfMemoryError";
  EXPECT_FALSE(RefusesHostMemory(incident)) << "Ray's monitor kills";
}

TEST(ExceptionWords, WhatNothingTellsIsConfigOnlyAsAGuess) {
  Incident incident;
  incident.exception_type = "RuntimeError";
  incident.message = "the mask is empty";
  incident.frame = FrameKind::kTrainStep;
  EXPECT_EQ(ToldFaultClass(incident), "");
  EXPECT_EQ(FaultClass(incident), "config");
  incident.frame = FrameKind::kConfig;
  EXPECT_EQ(ToldFaultClass(incident), "config");
}

TEST(ExceptionRows, NoRowIsHiddenByOneAbove) {
  for (const std::span<const ClassRow> rows : {FaultByWords(), FaultByType(), SubRows()}) {
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_FALSE(rows[i].type.empty() && rows[i].words.empty());
      for (size_t j = 0; j < i; ++j) {
        if (!rows[j].type.empty()) continue;
        EXPECT_EQ(rows[i].words.find(rows[j].words), std::string_view::npos)
            << rows[i].words << " is never reached behind " << rows[j].words;
      }
    }
  }
}

}  // namespace
}  // namespace rankscope::logs
