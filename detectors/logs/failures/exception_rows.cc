// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_rows.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "detectors/logs/failures/incident_text.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kEnv = "env";
constexpr std::string_view kAsset = "asset";
constexpr std::string_view kData = "data";
constexpr std::string_view kConfig = "config";

constexpr ClassRow kFaultByWords[] = {
    // Words that hold those of another class further down.
    {"", "api_key not configured", kConfig},  // wandb without a login
    {"", "api.wandb.ai", kConfig},
    {"", "circular import", kConfig},
    {"", "trust_remote_code", kConfig},
    {"", "ProcessGroupNCCL is only supported with GPUs", kEnv},
    {"", "on a CUDA device but torch.cuda.is_available() is False", kEnv},
    {"", "[Errno 27]", kConfig},                         // EFBIG: a limit on the size of files
    {"", "deserialize object on CUDA device", kConfig},  // saved on more devices than there are

    // Programs and libraries: what is installed, and whether its parts fit together.
    {"", "No module named", kEnv},
    {"", "undefined symbol", kEnv},
    {"", "cannot open shared object file", kEnv},
    {"", "GLIBC", kEnv},
    {"", "CXXABI_", kEnv},
    {"", "failed to import", kEnv},
    {"", "Failed to import", kEnv},
    {"", "cannot import name", kEnv},
    {"", "pip install", kEnv},
    {"", "pip3 install", kEnv},
    {"", "conda install", kEnv},
    {"", "not installed", kEnv},
    {"", "is not available in this environment", kEnv},
    {"", "was not found in your environment", kEnv},
    {"", "not found in your environment", kEnv},
    {"", "is required for a normal functioning of this module", kEnv},
    {"", "No package metadata was found", kEnv},
    {"", "incompatible with the installed", kEnv},
    {"", "requires Python", kEnv},
    {"", "requires a newer version of", kEnv},
    {"", "Descriptors cannot", kEnv},  // protobuf 4 and generated code of 3
    {"", "need to have sentencepiece", kEnv},
    {"", "untagged enum ModelWrapper", kEnv},  // a tokenizer.json newer than the library
    {"", "compiled using NumPy", kEnv},
    {"", "compiled against ABI version", kEnv},
    {"", "compiled against API version", kEnv},
    {"", "binary incompatibility", kEnv},
    {"", "size changed, may indicate", kEnv},
    {"", "Numpy is not available", kEnv},
    {"AttributeError", "module '", kEnv},

    // Extensions that are built on the spot.
    {"", "Error building extension", kEnv},
    {"", "Error compiling objects for extension", kEnv},
    {"", "Ninja is required", kEnv},
    {"", "CUDA_HOME", kEnv},
    {"", "detected CUDA version", kEnv},
    {"", "does not match the version torch was compiled with", kEnv},
    {"", "Unknown CUDA arch", kEnv},
    {"", "Unable to JIT load the", kEnv},  // DeepSpeed's op builder
    {"", "Failed to find C compiler", kEnv},
    {"", "working triton installation", kEnv},
    {"", "`ptxas` failed with error code", kEnv},
    {"", "PTXAS error", kEnv},
    {"", "libcuda.so cannot found", kEnv},  // Triton's own wording

    // The GPU, its driver and the libraries above it.
    {"", "driver version is insufficient", kEnv},
    {"", "NVIDIA driver on your system is too old", kEnv},
    {"", "Found no NVIDIA driver", kEnv},
    {"", "No CUDA GPUs are available", kEnv},
    {"", "no CUDA-capable device", kEnv},
    {"", "CUDA unknown error - this may be due to", kEnv},
    {"", "CUDA driver initialization failed", kEnv},
    {"", "Driver/library version mismatch", kEnv},
    {"", "NVML Shared Library Not Found", kEnv},
    {"", "not compiled with CUDA", kEnv},
    {"", "compiled without GPU support", kEnv},
    {"", "build with CUDA support", kEnv},  // xFormers' own wording
    {"", "CUDA Setup failed", kEnv},        // bitsandbytes
    {"", "no kernel image is available", kEnv},
    {"", "named symbol not found", kEnv},
    {"", "cuDNN version incompatibility", kEnv},
    {"", "DNN library is not found", kEnv},  // TensorFlow
    {"", "Could not create cudnn handle", kEnv},
    {"", "VERSION_MISMATCH", kEnv},
    {"", "compute capability", kEnv},
    {"", "only supports Ampere", kEnv},
    {"", "not support bf", kEnv},
    {"", "t support bf", kEnv},
    {"", "CUDA is not available", kEnv},
    {"", "CUDA is required but not available", kEnv},
    {"", "GPU is needed for quantization", kEnv},
    {"", "only be used on CUDA devices", kEnv},
    {"", "No operator found for `memory_efficient_attention", kEnv},
    {"", "command not found", kEnv},
    {"", ": error while loading shared libraries: ", kEnv},
    {"", ": symbol lookup error: ", kEnv},
    {"", ": relocation error: ", kEnv},
    {"", "' not found (required by ", kEnv},
    {"", "Exec format error", kEnv},
    {"", "Too many open files", kEnv},
    {"", "DataLoader worker (pid", kEnv},  // it does not know why its worker is gone
    {"", "can't start new thread", kEnv},
    {"", "was terminated abruptly while the future", kEnv},
    {"", "subprocesses has abruptly died", kEnv},

    // Architectures that the installed version does not know.
    {"", "does not recognize this architecture", kEnv},
    {"", "are not supported for now", kEnv},  // vLLM's model architectures

    // What is to be fetched from a hub or a file.
    {"", "does not appear to have a file named", kAsset},
    {"", "does not appear to have files named", kAsset},
    {"", "is not a valid model identifier", kAsset},
    {"", "Incorrect path_or_model_id", kAsset},
    {"", "Repository Not Found", kAsset},
    {"", "Revision Not Found", kAsset},
    {"", "Entry Not Found", kAsset},
    {"", "gated repo", kAsset},
    {"", "Client Error", kAsset},
    {"", "Server Error", kAsset},
    {"", "couldn't connect to", kAsset},
    {"", "Couldn't reach", kAsset},
    {"", "outgoing traffic has been disabled", kAsset},
    {"", "requested files in the", kAsset},
    {"", "find the appropriate snapshot folder", kAsset},
    {"", "Consistency check failed", kAsset},
    {"", "Can't load tokenizer", kAsset},
    {"", "Can't load the configuration", kAsset},
    {"", "Can't load the model", kAsset},
    {"", "Can't load feature extractor", kAsset},
    {"", "Can't load image processor", kAsset},
    {"", "Can't find 'adapter_config", kAsset},
    {"", "Unrecognized model in", kAsset},
    {"", "Unable to load weights", kAsset},
    {"", "Unable to load vocabulary", kAsset},
    {"", "Error no file named", kAsset},
    {"", "Error no files named", kAsset},
    {"", "Error while deserializing header", kAsset},  // safetensors
    {"", "Network is unreachable", kAsset},
    {"", "Max retries exceeded", kAsset},
    {"", "Name or service not known", kAsset},
    {"", "Temporary failure in name resolution", kAsset},
    {"", "is not a local folder", kAsset},
    {"", "PytorchStreamReader failed", kAsset},
    {"", "invalid load key", kAsset},
    {"", "The file might be corrupted", kAsset},
    {"", "Unable to locate credentials", kAsset},
    {"", "when calling the HeadObject", kAsset},
    {"", "when calling the GetObject", kAsset},

    // What stands inside a dataset.
    {"", "batch received was empty", kData},
    {"", "num_samples should be a positive integer", kData},
    {"", "cannot reshape array", kData},
    {"", "An error occurred while generating the dataset", kData},
    {"", "JSON parse error", kData},
    {"", "Couldn't cast", kData},
    {"", "Column name", kData},
    {"", "not in the dataset", kData},
    {"", "`Dataset`", kData},
    {"", "Couldn't find any data file", kData},
    {"", "Couldn't find a dataset", kData},
    {"", "Unable to find '", kData},  // datasets: no file for a pattern
    {"", "Unknown split", kData},
    {"", "Parquet magic bytes not found", kData},
    {"", "cannot identify image file", kData},
    {"", "image file is truncated", kData},
    {"", "No columns in the dataset match", kData},
    {"", "could not convert string to float", kData},
    {"", "input contains NaN", kData},
    {"", "Ran out of input", kData},
    {"", "truncation and/or padding", kData},  // rows of unequal length

    // Arguments, settings, and a program that does not fit what it calls.
    {"", "unexpected keyword argument", kConfig},
    {"", "required positional argument", kConfig},
    {"", "Target modules", kConfig},
    {"", "requires an eval_dataset", kConfig},
    {"", "requires a train_dataset", kConfig},
    {"", "Duplicate GPU detected", kConfig},
    {"", "out of resource: shared memory", kConfig},  // a Triton kernel's tile
};

// What conda raises (conda/exceptions.py): the environment is not what the script asks for.
constexpr ClassRow kOfConda[] = {
    {"CommandNotFoundError", "", kEnv},
    {"CondaEnvironmentError", "", kEnv},
    {"CondaError", "", kEnv},
    {"CondaHTTPError", "", kEnv},
    {"CondaIOError", "", kEnv},
    {"CondaSSLError", "", kEnv},
    {"CondaToSPermissionError", "", kEnv},
    {"CondaVerificationError", "", kEnv},
    {"DirectoryNotACondaEnvironmentError", "", kEnv},
    {"EnvironmentLocationError", "", kEnv},
    {"EnvironmentLocationNotFound", "", kEnv},
    {"EnvironmentNameNotFound", "", kEnv},
    {"EnvironmentNotWritableError", "", kEnv},
    {"NoWritableEnvsDirError", "", kEnv},
    {"PackagesNotFoundError", "", kEnv},
    {"ResolvePackageNotFound", "", kEnv},
    {"UnsatisfiableError", "", kEnv},
    {"CondaValueError", "", kConfig},
};

constexpr ClassRow kOfOthers[] = {
    {"ModuleNotFoundError", "", kEnv},
    {"ImportError", "", kEnv},
    {"PackageNotFoundError", "", kEnv},
    {"DistributionNotFound", "", kEnv},
    {"VersionConflict", "", kEnv},
    {"ContextualVersionConflict", "", kEnv},
    {"CUDAMismatchException", "", kEnv},
    {"MissingCUDAException", "", kEnv},
    {"TritonMissing", "", kEnv},
    {"RuntimeEnvSetupError", "", kEnv},
    {"pynvml.NVMLError_LibraryNotFound", "", kEnv},
    {"GatedRepoError", "", kAsset},
    {"DatasetNotFoundError", "", kAsset},
    {"DataFilesNotFoundError", "", kAsset},
    {"ClientPayloadError", "", kAsset},  // aiohttp, below fsspec
    {"ClientConnectorError", "", kAsset},
    {"ClientOSError", "", kAsset},
    {"ServerDisconnectedError", "", kAsset},
    {"FSTimeoutError", "", kAsset},
    {"RepositoryNotFoundError", "", kAsset},
    {"DisabledRepoError", "", kAsset},
    {"EntryNotFoundError", "", kAsset},
    {"LocalEntryNotFoundError", "", kAsset},
    {"RevisionNotFoundError", "", kAsset},
    {"FileMetadataError", "", kAsset},
    {"HfHubHTTPError", "", kAsset},
    {"BadRequestError", "", kAsset},
    {"HFValidationError", "", kAsset},
    {"SafetensorError", "", kAsset},
    {"PermissionError", "", kAsset},
    {"IsADirectoryError", "", kAsset},
    {"NotADirectoryError", "", kAsset},
    {"HTTPError", "", kAsset},
    {"HTTPStatusError", "", kAsset},
    {"URLError", "", kAsset},
    {"ConnectionError", "", kAsset},
    {"ConnectError", "", kAsset},
    {"ConnectTimeout", "", kAsset},
    {"ReadTimeout", "", kAsset},
    {"SSLError", "", kAsset},
    {"ProxyError", "", kAsset},
    {"MaxRetryError", "", kAsset},
    {"NewConnectionError", "", kAsset},
    {"NameResolutionError", "", kAsset},
    {"ConnectTimeoutError", "", kAsset},
    {"ReadTimeoutError", "", kAsset},
    {"ChunkedEncodingError", "", kAsset},
    {"IncompleteRead", "", kAsset},
    {"ProtocolError", "", kAsset},
    {"LocalTokenNotFoundError", "", kAsset},
    {"OfflineModeIsEnabled", "", kAsset},
    {"NoCredentialsError", "", kAsset},
    {"EndpointConnectionError", "", kAsset},
    {"NoSuchKey", "", kAsset},
    {"NoSuchBucket", "", kAsset},
    {"yaml.parser.ParserError", "", kConfig},  // pandas has one of that name
    {"ArrowInvalid", "", kData},
    {"ArrowTypeError", "", kData},
    {"ArrowKeyError", "", kData},
    {"ArrowNotImplementedError", "", kData},
    {"DatasetGenerationError", "", kData},
    {"DatasetGenerationCastError", "", kData},
    {"DatasetNotFoundError", "", kData},
    {"DataFilesNotFoundError", "", kData},
    {"SplitsNotFoundError", "", kData},
    {"ExpectedMoreSplitsError", "", kData},
    {"ExpectedMoreSplits", "", kData},
    {"UnexpectedSplits", "", kData},
    {"UnexpectedSplitsError", "", kData},
    {"NonMatchingSplitsSizesError", "", kData},
    {"NonMatchingChecksumError", "", kData},
    {"CastError", "", kData},
    {"JSONDecodeError", "", kData},
    {"UnicodeDecodeError", "", kData},
    {"UnidentifiedImageError", "", kData},
    {"DecompressionBombError", "", kData},
    {"LibsndfileError", "", kData},
    {"EmptyDataError", "", kData},
    {"ParserError", "", kData},
    {"csv.Error", "", kData},
    {"BadZipFile", "", kData},
    {"BadGzipFile", "", kData},
    {"ReadError", "", kData},
    {"EOFError", "", kData},
    {"UnpicklingError", "", kData},
    {"NotImplementedError", "", kConfig},
    {"MissingMandatoryValue", "", kConfig},
    {"ConfigAttributeError", "", kConfig},
    {"ConfigKeyError", "", kConfig},
    {"ConfigTypeError", "", kConfig},
    {"ConfigValueError", "", kConfig},
    {"ConfigCompositionException", "", kConfig},
    {"MissingConfigException", "", kConfig},
    {"OverrideParseException", "", kConfig},
    {"InterpolationKeyError", "", kConfig},
    {"InterpolationResolutionError", "", kConfig},
    {"ValidationError", "", kConfig},
    {"ScannerError", "", kConfig},
    {"ComposerError", "", kConfig},
    {"ConstructorError", "", kConfig},
    {"TOMLDecodeError", "", kConfig},
    {"DeepSpeedConfigError", "", kConfig},
    {"MisconfigurationException", "", kConfig},
    {"UsageError", "", kConfig},
    {"CommError", "", kAsset},  // wandb's, of a service that does not answer
    {"AuthenticationError", "", kConfig},
    {"ArgumentError", "", kConfig},
    {"ArgumentTypeError", "", kConfig},
    {"OutOfResources", "", kConfig},
    {"SyntaxError", "", kConfig},
    {"IndentationError", "", kConfig},
    {"TabError", "", kConfig},
    {"NameError", "", kConfig},
    {"UnboundLocalError", "", kConfig},
};

// conda's first.
constexpr auto kFaultByType = [] {
  std::array<ClassRow, std::size(kOfConda) + std::size(kOfOthers)> rows{};
  std::copy(std::begin(kOfConda), std::end(kOfConda), rows.begin());
  std::copy(std::begin(kOfOthers), std::end(kOfOthers), rows.begin() + std::size(kOfConda));
  return rows;
}();

}  // namespace

bool IsCondas(std::string_view type, std::string_view message) {
  const auto named = [type](const ClassRow& row) { return row.type == type; };
  return std::any_of(std::begin(kOfConda), std::end(kOfConda), named) ||
         (type == "ArgumentError" && Contains(message, "conda"));
}

std::span<const ClassRow> FaultByWords() {
  return kFaultByWords;
}
std::span<const ClassRow> FaultByType() {
  return kFaultByType;
}
bool Fits(const ClassRow& row, std::string_view dotted_type, std::string_view message) {
  if (!row.type.empty()) {
    const bool dotted = row.type.find('.') != std::string_view::npos;
    if (dotted ? !dotted_type.ends_with(row.type) : LastComponent(dotted_type) != row.type)
      return false;
  }
  return row.words.empty() || Contains(message, row.words);
}

}  // namespace rankscope::logs
