// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/pci_card.h"

namespace rankscope::logs {
namespace {

struct ErrorRow {
  std::string_view text;   // as the runtime words it
  std::string_view error;  // value of the field `error`
};

// The runtime's words for the errors whose meaning differs; anything else keeps its own words.
constexpr ErrorRow kErrors[] = {
    {"uncorrectable ECC error", "ecc_uncorrectable"},
    {"ECCUncorrectable", "ecc_uncorrectable"},
    {"ECC_UNCORRECTABLE", "ecc_uncorrectable"},
    {"illegal memory access", "illegal_address"},
    {"ILLEGAL_ADDRESS", "illegal_address"},
    {"misaligned address", "misaligned_address"},
    {"illegal instruction", "illegal_instruction"},
    {"unspecified launch failure", "launch_failure"},
    {"device-side assert triggered", "device_assert"},
    {"launch timed out", "launch_timeout"},
    {"no kernel image", "no_kernel_image"},
    {"invalid device function", "no_kernel_image"},
    {"driver version is insufficient", "driver_too_old"},
    {"PTX was compiled with an unsupported toolchain", "driver_too_old"},
    {"forward compatibility was attempted", "driver_too_old"},
    {"no CUDA-capable device", "no_device"},
    {"invalid device ordinal", "invalid_device"},
    {"busy or unavailable", "device_busy"},
    {"initialization error", "initialization_error"},
    {"system not yet initialized", "fabric_not_ready"},
    {"nvlink", "nvlink"},
    {"NVLink", "nvlink"},
    {"hardware stack error", "hardware_stack"},
    {"GPU is lost", "gpu_lost"},
    {"device lost", "gpu_lost"},
    {"unsupported display driver", "driver_too_old"},
    {"SYSTEM_DRIVER_MISMATCH", "driver_too_old"},
    {"UNSUPPORTED_PTX_VERSION", "driver_too_old"},
    {"named symbol not found", "no_kernel_image"},
    {"NO_BINARY_FOR_GPU", "no_kernel_image"},
    {"CUDA_ERROR_NO_DEVICE", "no_device"},
    {"CUDA_ERROR_INVALID_DEVICE", "invalid_device"},
    {"CUDA_ERROR_NOT_INITIALIZED", "initialization_error"},
    {"SYSTEM_NOT_READY", "fabric_not_ready"},
    {"CUDA_ERROR_LAUNCH_FAILED", "launch_failure"},
    {"cudaErrorLaunchFailure", "launch_failure"},
    {"CUDA_ERROR_LAUNCH_TIMEOUT", "launch_timeout"},
    {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned_address"},
    {"CUDA_ERROR_ASSERT", "device_assert"},
    {"cudaErrorAssert", "device_assert"},
    {"unknown error", "unknown"},
    {"CUDA_ERROR_UNKNOWN", "unknown"},
};

constexpr std::string_view kTexts[] = {
    "CUDA error: ",
    "CUDA error (",
    "CUDA driver error: ",
    "CUDA Runtime Error",
    "cuda runtime error",
    "CUDA runtime error",
    "Cuda failure ",
    "CUDA failure ",
    "HIP error: ",
    "cudaError",
    "CUDA_ERROR_",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "CUSOLVER_STATUS_",
    "cuDNN error: ",
    "CUFFT_",
    "ncclUnhandledCudaError",
    "unhandled cuda error",
    "Triton Error [CUDA]",
    "cudaGetDeviceCount",
};

constexpr std::string_view kAnchors[] = {
    "CUDA error: ",       "cudaErrorECC", "cudaErrorIllegal", "cudaErrorLaunch",
    "CUDA runtime error", "CUDA_ERROR_",  "Cuda failure ",    "cuda runtime error"};

// What PyTorch adds below its own message of an error, from 2.9 on: "Search for `cudaErrorAssert'
// in https://docs.nvidia.com/cuda/...". c10/cuda/CUDAMiscFunctions.cpp.
bool IsAdvice(std::string_view text) {
  return Contains(text, "Search for `") && Contains(text, "' in https://docs.nvidia.com/");
}

// The entry point of NVIDIA's containers tries the driver before the program starts, and prints
// what it met in double brackets: "[[Forward compatibility was attempted on non supported HW
// (CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) cuInit()=804]]". The container goes on without it.
bool IsNoticeOfContainer(std::string_view text) {
  text = Trim(text);
  return text.starts_with("[[") && text.ends_with("]]");
}

void ParseCuda(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text) || IsRetry(line.text) || IsAdvice(line.text) ||
      IsNoticeOfContainer(line.text))
    return;
  // The peer's view of an error that was raised before: "previous error".
  Incident incident = MakeIncident(IncidentKind::kCudaError, line, "cuda_error");
  if (ReadDeviceMemory(line.text, incident) || !ReadCudaError(line.text, incident)) return;
  if (IsWarningLevel(line.text)) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

// A kernel's own words before the runtime's: "Indexing.cu:88: f: block: [1,0,0], thread: [7,0,0]
// Assertion `i < n` failed." Hundreds of threads say it; what they assert makes them one.
void ParseAssertion(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const size_t assertion = text.find("Assertion `");
  if (assertion == text.npos || !ContainsAny(text, {"block: [", "thread: ["}) ||
      !Contains(text, "` failed"))
    return;
  Incident incident = MakeIncident(IncidentKind::kCudaError, line, "device_assertion");
  incident.message = Capped(text.substr(assertion), kMessageCap);
  AddField(incident, "error", "device_assert");
  out.push_back(std::move(incident));
}

constexpr std::string_view kAssertionAnchors[] = {"Assertion `"};

// nvidia-smi about a GPU that is on the bus's list and does not answer. What it says of a GPU that
// the user may not see, or that was never there, ends in other words.
void ParseSmi(const CleanLine& line, RecordList& out) {
  const std::string_view rest = After(line.text, "the device handle for GPU");
  if (!ContainsAny(rest, {": Unknown Error", ": GPU is lost"})) return;
  Incident incident = MakeIncident(IncidentKind::kCudaError, line, "smi_lost");
  incident.rank = -1;
  incident.message = Capped(Trim(line.text), kMessageCap);
  AddField(incident, "error", "gpu_lost");
  // Newer ones put its number before its place: "GPU5: 0000:D8:00.0".
  const std::string_view place = TrimLeft(rest);
  const std::string card = PciCard(place);
  AddField(incident, "bus_id", card.empty() ? PciCard(After(place, ": ")) : card);
  out.push_back(std::move(incident));
}

constexpr std::string_view kSmiAnchors[] = {"Unable to determine the device handle for GPU"};

constexpr ShapeRow kRows[] = {
    {"device_assertion", "a kernel's own assertion fails on the GPU", kAssertionAnchors,
     ParseAssertion,
     "/b/aten/src/ATen/native/cuda/Loss.cu:242: nll_loss: block: [0,0,0], thread: [5,0,0] "
     "Assertion "
     "`target < classes` failed."},
    {"smi_lost", "nvidia-smi gets no answer from a GPU", kSmiAnchors, ParseSmi,
     "Unable to determine the device handle for GPU5: 0000:D8:00.0: Unknown Error"},
    {"cuda_error", "the CUDA runtime reports an error other than lack of memory", kAnchors,
     ParseCuda,
     "[E218 10:12:44.103 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 2] Process group watchdog thread "
     "terminated "
     "with exception: CUDA error: unspecified launch failure"},
};

// "CUDA error: an illegal memory access was encountered" -> what follows the colon, one sentence.
std::string_view OwnWords(std::string_view text) {
  for (std::string_view opening : kTexts) {
    const size_t at = text.find(opening);
    if (at == std::string_view::npos) continue;
    // Identifiers (cudaErrorX, CUBLAS_STATUS_X) are their own words.
    const bool identifier = opening.back() != ' ';
    const std::string_view words = identifier ? text.substr(at) : text.substr(at + opening.size());
    return Capped(Trim(words.substr(0, words.find_first_of(identifier ? "\n.;'`" : "\n.;"))), 120);
  }
  return {};
}

}  // namespace

bool ReadCudaError(std::string_view text, Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  const bool by_type = type == "CUDAError" || type == "AcceleratorError" || type == "CudaError";
  if (!by_type && !ContainsAny(text, kTexts)) return false;
  if (Contains(text, "previous error")) incident.role = Role::kCascade;
  incident.kind = IncidentKind::kCudaError;
  for (const ErrorRow& row : kErrors) {
    if (!Contains(text, row.text)) continue;
    AddField(incident, "error", row.error);
    return true;
  }
  AddField(incident, "error", OwnWords(text));
  return true;
}

std::span<const ShapeRow> CudaShapes() {
  return kRows;
}

}  // namespace rankscope::logs
