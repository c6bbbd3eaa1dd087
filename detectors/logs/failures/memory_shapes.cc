// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"

namespace rankscope::logs {
namespace {

void AddBytesAfter(std::string_view text, std::string_view needle, std::string_view key,
                   Incident& incident) {
  const size_t at = text.find(needle);
  if (at == std::string_view::npos) return;
  const auto bytes = LeadingBytes(TrimLeft(text.substr(at + needle.size())));
  if (bytes) AddField(incident, key, *bytes);
}

// The size that is printed right before `needle`: "781.59 MiB already allocated".
std::optional<int64_t> BytesBefore(std::string_view text, std::string_view needle) {
  const size_t at = text.find(needle);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view head = TrimRight(text.substr(0, at));
  const size_t unit = head.find_last_of(' ');
  if (unit == std::string_view::npos) return std::nullopt;
  size_t begin = unit;
  while (begin > 0 &&
         (head[begin - 1] == '.' || (head[begin - 1] >= '0' && head[begin - 1] <= '9'))) {
    --begin;
  }
  return LeadingBytes(head.substr(begin));
}

void AddBytesBefore(std::string_view text, std::string_view needle, std::string_view key,
                    Incident& incident) {
  const auto bytes = BytesBefore(text, needle);
  if (bytes) AddField(incident, key, *bytes);
}

// The torch allocator's sentence in all its generations: "(GPU 0; 6.00 GiB total capacity; ...
// reserved in total by PyTorch)" up to 2.0, "GPU 0 has a total capacity of ... of which ... is
// free. ..." since. `reserved` is always the allocator's total: 2.1 and newer print what is
// reserved beyond the allocated, 1.4 and older call that "cached".
void AddAllocatorFields(std::string_view text, Incident& incident) {
  AddBytesAfter(text, "ried to allocate", "requested", incident);
  if (const auto gpu = IntAfter(text, "GPU "); gpu) AddField(incident, "gpu", *gpu);
  if (Contains(text, "total capacity;")) {
    AddBytesBefore(text, "total capacity;", "total", incident);
    AddBytesBefore(text, "already allocated", "allocated", incident);
    AddBytesBefore(text, "free;", "free", incident);
    AddBytesBefore(text, "reserved in total", "reserved", incident);
    const auto allocated = BytesBefore(text, "already allocated");
    const auto cached = BytesBefore(text, "cached");
    if (allocated && cached) AddField(incident, "reserved", *allocated + *cached);
    return;
  }
  AddBytesAfter(text, "total capacity of", "total", incident);
  AddBytesAfter(text, "total capacty of", "total", incident);  // torch 2.1's own spelling
  AddBytesAfter(text, "of which", "free", incident);
  AddBytesAfter(text, "this process has", "this_process", incident);
  const auto allocated = BytesBefore(text, "is allocated by PyTorch");
  const auto idle = BytesBefore(text, "is reserved by PyTorch but unallocated");
  if (allocated) AddField(incident, "allocated", *allocated);
  if (allocated && idle) AddField(incident, "reserved", *allocated + *idle);
  // Other processes on the same device, possibly several; the largest is the one worth asking
  // about.
  int64_t other_bytes = -1;
  int listed = 0;
  int64_t other_pid = 0;
  constexpr int kMaxProcesses = 64;  // on one device; also keeps the search linear
  std::string_view rest = text;
  for (int i = 0; i < kMaxProcesses && !(rest = After(rest, "Process ")).empty(); ++i) {
    const auto pid = LeadingInt(rest);
    const auto bytes = LeadingBytes(TrimLeft(After(Before(rest, "in use"), "has ")));
    if (pid && bytes) ++listed;
    if (pid && bytes)
      AddField(incident, "tenant", std::to_string(*pid) + " " + std::to_string(*bytes));
    if (pid && bytes && *bytes > other_bytes) {
      other_bytes = *bytes;
      other_pid = *pid;
    }
  }
  // torch tells its own entry by its pid. In a pid namespace it finds none of that number, and the
  // only one that is listed is its own.
  if (listed == 1 && FieldOf(incident, "this_process").empty()) {
    std::erase_if(incident.fields, [](const KeyValue& field) { return field.key == "tenant"; });
    AddField(incident, "this_process", other_bytes);
    return;
  }
  if (other_bytes >= 0) {
    AddField(incident, "other_process", other_bytes);
    AddField(incident, "other_pid", other_pid);
  }
}

// Texts of libraries that only say that the device had no memory left.
constexpr std::string_view kDeviceTexts[] = {
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",
    "HIP error: out of memory",
    "CUDA failure 2: out of memory",
    "Cuda failure 'out of memory'",
    "Cuda failure 2 'out of memory'",
    "CUDA runtime error (2) : out of memory",
    "cuda runtime error (2) : out of memory",
    "cudaErrorMemoryAllocation",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUSPARSE_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
    "Failed to CUDA calloc",
    "Failed to CUDA malloc",
    "No executable batch size found",  // accelerate, utils/memory.py: behind the last refusal
    "OOM when allocating tensor",
    "RESOURCE_EXHAUSTED: Out of memory",
    "RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY",
    "RESOURCE_EXHAUSTED: Failed to allocate request for",
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space",
    "Resource exhausted: Out of memory",
    "cudaMalloc failed: out of memory",
    "hipErrorOutOfMemory",
    "Error out of memory at line ",  // bitsandbytes' own kernels
    "Out of memory error on GPU",    // Paddle
    "MPS backend out of memory",
    "Triton Error [CUDA]: out of memory",
    "memory isn't enough and alloc failed",      // MindSpore, of a device; of the host with an M
    "No available memory for the cache blocks",  // vLLM, and the next two
    "tokens that can be stored in KV cache",
    "is larger than the available KV cache memory",
    "is less than desired GPU memory utilization",
};

constexpr std::string_view kHostTexts[] = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "[Errno 12] Cannot allocate memory",
    "Cannot allocate memory (12)",
    "errno: 12 - Cannot allocate memory",
    "std::bad_alloc",
    "realloc of size",
    "malloc of size",
    "fork: Cannot allocate memory",
    "Memory isn't enough and alloc failed",  // MindSpore
};

// The Rust allocator's last words, which tokenizers and polars end with.
bool IsRustAllocation(std::string_view text) {
  return Contains(text, "memory allocation of ") && Contains(text, " bytes failed");
}

constexpr std::string_view kAllocatorAnchors[] = {
    "CUDA out of memory. Tried to allocate", "HIP out of memory. Tried to allocate",
    "NPU out of memory. Tried to allocate", "XPU out of memory. Tried to allocate"};
constexpr std::string_view kHostAnchors[] = {"DefaultCPUAllocator: ", "Cannot allocate memory",
                                             "std::bad_alloc", "memory allocation of "};

void ParseDevice(const CleanLine& line, RecordList& out) {
  // A line that is itself an exception is read by the row for those; a handled one is announced.
  if (HasOwnRow(line.text) || IsRetry(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kCudaOom, line, "device_memory");
  // An allocation that TensorFlow reports on the way to a fallback.
  if (Contains(line.text, "this is not a failure")) return;
  if (!ReadDeviceMemory(line.text, incident)) return;
  if (IsWarningLevel(line.text)) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

void ParseHost(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text) || IsRetry(line.text) || IsWarningLevel(line.text)) return;
  if (Contains(line.text, "terminate called")) return;  // has a row of its own
  Incident incident = MakeIncident(IncidentKind::kHostOom, line, "host_memory");
  if (ReadHostMemory(line.text, incident)) out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"device_allocator", "an allocator of device memory refuses a request", kAllocatorAnchors,
     ParseDevice,
     "worker 3 stopped: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 1 has a total "
     "capacity of 15.77 "
     "GiB of which 40.50 MiB is free. Including non-PyTorch memory, this process has 15.72 GiB "
     "memory in use. "
     "Of the allocated memory 14.02 GiB is allocated by PyTorch, and 811.12 MiB is reserved by "
     "PyTorch but "
     "unallocated."},
    {"device_memory", "a GPU library reports that device memory is exhausted", kDeviceTexts,
     ParseDevice,
     "n07:118:240 [3] include/alloc.h:192 NCCL WARN Failed to CUDA calloc async 608 bytes"},
    {"host_memory", "an allocator of host memory refuses a request", kHostAnchors, ParseHost,
     "[enforce fail at alloc_cpu.cpp:83] . DefaultCPUAllocator: can't allocate memory: you tried "
     "to allocate "
     "25769803776 bytes. Error code 12 (Cannot allocate memory)"},
};

}  // namespace

bool ReadDeviceMemory(std::string_view text, Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  const bool torch_text = ContainsAny(text, kAllocatorAnchors) ||
                          (!type.empty() && (text.starts_with("CUDA out of memory") ||
                                             text.starts_with("HIP out of memory")));
  const bool by_type = type == "OutOfMemoryError" || type == "ResourceExhaustedError" ||
                       type == "OutOfMemoryException";
  if (!torch_text && !by_type && !ContainsAny(text, kDeviceTexts)) return false;
  // ray's and others' OutOfMemoryError speak of the host.
  if (by_type && !torch_text && incident.exception_type.starts_with("ray.")) return false;
  // TensorFlow names the device whose allocator refused.
  if (ContainsAny(text, {"by allocator cpu", "by allocator mklcpu"})) return false;
  incident.kind = IncidentKind::kCudaOom;
  if (torch_text || by_type) AddAllocatorFields(text, incident);
  if (FieldOf(incident, "requested").empty()) {
    AddBytesAfter(text, "trying to allocate", "requested", incident);
    AddBytesAfter(text, "Failed to CUDA calloc async", "requested", incident);
    AddBytesAfter(text, "Failed to CUDA calloc", "requested", incident);
  }
  if (FieldOf(incident, "requested").empty()) {
    AddBytesAfter(text, "Out of memory allocating", "requested", incident);
    AddBytesAfter(text, ", alloc size:", "requested", incident);
  }
  if (ContainsAny(text, {"cache blocks", "KV cache"})) incident.sub = "kv_cache";
  if (ContainsAny(text, {"_STATUS_ALLOC_FAILED", "CUFFT_ALLOC_FAILED"})) incident.sub = "library";
  if (Contains(text, "Failed to CUDA ")) incident.sub = "nccl";
  return true;
}

bool ReadHostMemory(std::string_view text, Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  const bool by_type = type == "MemoryError" || type == "_ArrayMemoryError" ||
                       type == "ArrowMemoryError" || type == "bad_alloc" ||
                       (type == "OutOfMemoryError" && incident.exception_type.starts_with("ray."));
  const bool tensor = Contains(text, "OOM when allocating tensor");  // on the host: see above
  if (!by_type && !tensor && !IsRustAllocation(text) && !ContainsAny(text, kHostTexts))
    return false;
  incident.kind = IncidentKind::kHostOom;
  AddBytesAfter(text, "memory allocation of", "requested", incident);
  AddBytesAfter(text, "you tried to allocate", "requested", incident);
  AddBytesAfter(text, "Unable to allocate", "requested", incident);
  return true;
}

std::span<const ShapeRow> MemoryShapes() {
  return kRows;
}

}  // namespace rankscope::logs
