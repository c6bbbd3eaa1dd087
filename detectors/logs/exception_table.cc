// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/exception_table.h"

#include "detectors/logs/incident_text.h"

namespace rankscope::logs {
namespace {

// An empty column fits anything. `type` is the last component of the exception's type, `words` a
// substring of its message.
struct ClassRow {
  std::string_view type;
  std::string_view words;
  std::string_view value;
};

// The words first: they tell more than the type. Both tables are read from the top.
constexpr ClassRow kFaultByWords[] = {
    // What is installed, and what the machine can do.
    {"", "undefined symbol", "env"},
    {"", "GLIBC", "env"},
    {"", "cannot open shared object file", "env"},
    {"", "driver version is insufficient", "env"},
    {"", "no kernel image is available", "env"},
    {"", "not compiled with CUDA", "env"},
    {"", "Found no NVIDIA driver", "env"},
    {"", "No CUDA GPUs are available", "env"},
    {"", "no CUDA-capable device", "env"},
    {"", "CUDA_HOME", "env"},
    {"", "is not available in this environment", "env"},
    {"", "not support bf", "env"},
    {"", "t support bf", "env"},
    {"", "not support bfloat16", "env"},
    {"", "only supports Ampere", "env"},
    {"", "pip install", "env"},
    {"", "conda install", "env"},
    {"", "is not installed", "env"},
    {"", "compiled using NumPy", "env"},
    {"", "binary incompatibility", "env"},
    {"", "incompatible with the installed", "env"},
    {"", "failed to import", "env"},
    {"", "Failed to import", "env"},
    {"", "No module named", "env"},
    {"", "Error building extension", "env"},
    {"", "Ninja is required", "env"},
    {"", "compute capability", "env"},
    {"", "CUDA is not available", "env"},
    {"", "only be used on CUDA devices", "env"},
    {"", "command not found", "env"},
    {"", "Numpy is not available", "env"},
    {"", "numpy.dtype size changed", "env"},
    {"AttributeError", "module '", "env"},

    // What is to be fetched from a hub or a file.
    {"", "does not appear to have a file named", "asset"},
    {"", "is not a valid model identifier", "asset"},
    {"", "Incorrect path_or_model_id", "asset"},
    {"", "Repository Not Found", "asset"},
    {"", "gated repo", "asset"},
    {"", "Client Error", "asset"},
    {"", "Server Error", "asset"},
    {"", "couldn't connect to", "asset"},
    {"", "Can't load tokenizer", "asset"},
    {"", "Can't load the configuration", "asset"},
    {"", "Can't load feature extractor", "asset"},
    {"", "Unable to load weights", "asset"},
    {"", "Error no file named", "asset"},
    {"", "Network is unreachable", "asset"},
    {"", "Max retries exceeded", "asset"},
    {"", "Name or service not known", "asset"},
    {"", "Temporary failure in name resolution", "asset"},
    {"", "Cannot find the requested files in the", "asset"},
    {"", "is not a local folder", "asset"},
    {"", "PytorchStreamReader failed", "asset"},
    {"", "invalid load key", "asset"},

    // What stands inside a dataset.
    {"", "batch received was empty", "data"},
    {"", "num_samples should be a positive integer", "data"},
    {"", "cannot reshape array", "data"},
    {"", "An error occurred while generating the dataset", "data"},
    {"", "Couldn't cast", "data"},
    {"", "Column name", "data"},
    {"", "not in the dataset", "data"},
    {"", "`Dataset`", "data"},
    {"", "Couldn't find any data file", "data"},
    {"", "Couldn't find a dataset", "data"},
    {"", "cannot identify image file", "data"},
    {"", "No columns in the dataset match", "data"},
    {"", "could not convert string to float", "data"},
    {"", "input contains NaN", "data"},
    {"", "Ran out of input", "data"},

    {"", "unexpected keyword argument", "config"},
    {"", "missing 1 required positional argument", "config"},
    {"", "Target modules", "config"},
};

constexpr ClassRow kFaultByType[] = {
    {"ModuleNotFoundError", "", "env"},
    {"ImportError", "", "env"},
    {"PackageNotFoundError", "", "env"},
    {"DistributionNotFound", "", "env"},
    {"VersionConflict", "", "env"},
    {"CUDAMismatchException", "", "env"},
    {"MissingCUDAException", "", "env"},
    {"GatedRepoError", "", "asset"},
    {"RepositoryNotFoundError", "", "asset"},
    {"EntryNotFoundError", "", "asset"},
    {"LocalEntryNotFoundError", "", "asset"},
    {"RevisionNotFoundError", "", "asset"},
    {"HfHubHTTPError", "", "asset"},
    {"HFValidationError", "", "asset"},
    {"SafetensorError", "", "asset"},
    {"PermissionError", "", "asset"},
    {"IsADirectoryError", "", "asset"},
    {"NotADirectoryError", "", "asset"},
    {"HTTPError", "", "asset"},
    {"URLError", "", "asset"},
    {"ConnectionError", "", "asset"},
    {"ConnectTimeout", "", "asset"},
    {"ReadTimeout", "", "asset"},
    {"SSLError", "", "asset"},
    {"ProxyError", "", "asset"},
    {"MaxRetryError", "", "asset"},
    {"NewConnectionError", "", "asset"},
    {"ConnectTimeoutError", "", "asset"},
    {"ReadTimeoutError", "", "asset"},
    {"LocalTokenNotFoundError", "", "asset"},
    {"OfflineModeIsEnabled", "", "asset"},
    {"ArrowInvalid", "", "data"},
    {"ArrowTypeError", "", "data"},
    {"ArrowNotImplementedError", "", "data"},
    {"DatasetGenerationError", "", "data"},
    {"DatasetGenerationCastError", "", "data"},
    {"DatasetNotFoundError", "", "data"},
    {"DataFilesNotFoundError", "", "data"},
    {"ExpectedMoreSplitsError", "", "data"},
    {"NonMatchingSplitsSizesError", "", "data"},
    {"CastError", "", "data"},
    {"JSONDecodeError", "", "data"},
    {"UnicodeDecodeError", "", "data"},
    {"UnidentifiedImageError", "", "data"},
    {"EmptyDataError", "", "data"},
    {"ParserError", "", "data"},
    {"BadZipFile", "", "data"},
    {"EOFError", "", "data"},
    {"UnpicklingError", "", "data"},
    {"NotImplementedError", "", "config"},
    {"MissingMandatoryValue", "", "config"},
    {"ConfigAttributeError", "", "config"},
    {"ConfigKeyError", "", "config"},
    {"ValidationError", "", "config"},
    {"SyntaxError", "", "config"},
    {"IndentationError", "", "config"},
    {"NameError", "", "config"},
};

constexpr ClassRow kSubs[] = {
    {"ModuleNotFoundError", "", "missing_module"},
    {"ImportError", "", "missing_module"},
    {"PackageNotFoundError", "", "missing_module"},
    {"FileNotFoundError", "", "file_not_found"},
    {"", "No such file or directory", "file_not_found"},
    {"NotADirectoryError", "", "file_not_found"},
    {"PermissionError", "", "permission"},
    {"", "Permission denied", "permission"},
    {"MemoryError", "", "host_memory"},
    {"_ArrayMemoryError", "", "host_memory"},
    {"ZeroDivisionError", "", "division_by_zero"},
    {"FloatingPointError", "", "division_by_zero"},
    {"", "found at least two devices", "device_mismatch"},
    {"", "Expected all tensors to be on the same device", "device_mismatch"},
    {"", "Input type (torch.cuda", "device_mismatch"},
    {"", "Input type (torch.Float", "device_mismatch"},
    {"", "different devices", "device_mismatch"},
    {"", "must match the size of tensor", "shape_mismatch"},
    {"", "shapes cannot be multiplied", "shape_mismatch"},
    {"", "size mismatch", "shape_mismatch"},
    {"", "Sizes of tensors must match", "shape_mismatch"},
    {"", "is invalid for input of size", "shape_mismatch"},
    {"", "operands could not be broadcast", "shape_mismatch"},
    {"", "stack expects each tensor to be equal size", "shape_mismatch"},
    {"", "to match target batch_size", "shape_mismatch"},
    {"", "Incompatible shapes", "shape_mismatch"},
    {"", "Expected input batch_size", "shape_mismatch"},
    {"AssertionError", "", "assertion"},
    {"KeyError", "", "key_or_index"},
    {"IndexError", "", "key_or_index"},
};

std::string_view Lookup(std::span<const ClassRow> rows, std::string_view type,
                        std::string_view words) {
  for (const ClassRow& row : rows) {
    if (!row.type.empty() && row.type != type) continue;
    if (!row.words.empty() && !Contains(words, row.words)) continue;
    return row.value;
  }
  return {};
}

// A tokenizer is read while a data set is prepared, and is part of the model all the same.
bool NamesModelFile(std::string_view message) {
  return ContainsAny(message, {"tokenizer", "vocab.", "merges.txt", ".safetensors", "pytorch_model",
                               "adapter_config"});
}

}  // namespace

std::string_view FaultClass(const Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  if (const auto value = Lookup(kFaultByWords, type, incident.message); !value.empty())
    return value;
  if (incident.kind == IncidentKind::kUsageError) return "config";
  // The type of a file error or a lookup says what was missing, the frame whose it was.
  const bool in_data =
      incident.frame == FrameKind::kDataset || incident.frame == FrameKind::kDataLoader;
  const bool missing = type == "FileNotFoundError" || type == "OSError" || type == "IOError";
  if (missing) return in_data && !NamesModelFile(incident.message) ? "data" : "asset";
  // Files that cannot be decoded: what they were for says whose they are.
  const bool undecodable = type == "JSONDecodeError" || type == "UnicodeDecodeError" ||
                           type == "EOFError" || type == "UnpicklingError";
  if (undecodable && incident.frame == FrameKind::kConfig) return "config";
  if (undecodable && incident.frame == FrameKind::kAssetLoad) return "asset";
  if (const auto value = Lookup(kFaultByType, type, {}); !value.empty()) return value;
  if (incident.frame == FrameKind::kImport) return "env";
  if (in_data) return "data";
  if (incident.kind == IncidentKind::kCudaError) return "env";
  if (incident.frame == FrameKind::kAssetLoad && type != "ValueError" && type != "TypeError")
    return "asset";
  // A vague last exception of a chain: its cause may be plain.
  const std::string_view cause = LastComponent(incident.cause_type);
  if (!cause.empty()) {
    if (const auto value = Lookup(kFaultByWords, cause, incident.cause_message); !value.empty()) {
      return value;
    }
    if (const auto value = Lookup(kFaultByType, cause, {}); !value.empty()) return value;
  }
  // A lookup that failed away from any configuration is about what was read.
  const bool lookup = type == "IndexError" || type == "KeyError";
  if (lookup && incident.frame == FrameKind::kUnknown) return "data";
  return "config";
}

std::string_view ExceptionSub(const Incident& incident) {
  if (incident.kind == IncidentKind::kHostOom) return "host_memory";
  if (incident.kind == IncidentKind::kCudaError || incident.kind == IncidentKind::kCudaOom) {
    return "cuda_runtime";
  }
  const std::string_view type = LastComponent(incident.exception_type);
  if (const auto value = Lookup(kSubs, type, incident.message); !value.empty()) return value;
  const std::string_view fault = FaultClass(incident);
  if (incident.kind == IncidentKind::kUsageError) {
    return fault == "env" ? "missing_module" : "bad_config";
  }
  if (fault == "asset") return "asset_unavailable";
  if (fault == "data") return "bad_data";
  const bool setting =
      type == "ValueError" || type == "TypeError" || incident.frame == FrameKind::kConfig;
  return setting && incident.frame != FrameKind::kTrainStep ? "bad_config" : "other";
}

}  // namespace rankscope::logs
