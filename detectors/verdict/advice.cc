// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/advice.h"

#include <algorithm>
#include <csignal>

#include "detectors/families/sender.h"
#include "detectors/model/subs.h"

namespace rankscope::engine {
namespace {

using families::FieldOf;
using families::Finding;
using families::FindSender;
using features::Cause;
using features::JobFeatures;

constexpr std::string_view kProgram = "A1 X1", kPrograms = "A1 X1 E2";

struct Row {
  std::string_view codes;  // of families, blanks between them
  std::string_view type;   // last component of the exception's, if that matters
  std::string_view words;  // what its type, message or cause contains
  std::string_view also;   // and this, if anything
  std::string_view advice;
};

// In order: the first that fits. Words are those of the emitter's source.
constexpr Row kRows[] = {
    // CUDA's runtime and driver: driver_types.h, cuda.h; torch/csrc/cuda, torch/cuda/__init__.py.
    {kProgram, "", "system not yet initialized", "", "fabric_not_ready"},
    {kProgram, "", "SYSTEM_NOT_READY", "", "fabric_not_ready"},
    {kProgram, "", "SystemNotReady", "", "fabric_not_ready"},
    {kProgram, "", "unsupported display driver", "", "driver_mismatch"},
    {kProgram, "", "forward compatibility was attempted", "", "driver_mismatch"},
    {kProgram, "", "SYSTEM_DRIVER_MISMATCH", "", "driver_mismatch"},
    {kProgram, "", "Driver/library version mismatch", "", "driver_mismatch"},
    {kProgram, "", "driver version is insufficient", "", "driver_too_old"},
    {kProgram, "", "NVIDIA driver on your system is too old", "", "driver_too_old"},
    {kProgram, "", "compiled with an unsupported toolchain", "", "driver_too_old"},
    {kProgram, "", "UNSUPPORTED_PTX_VERSION", "", "driver_too_old"},
    {kProgram, "", "no kernel image is available", "", "gpu_build"},
    {kProgram, "", "invalid device function", "", "gpu_build"},
    {kProgram, "", "NO_BINARY_FOR_GPU", "", "gpu_build"},
    {kProgram, "", "busy or unavailable", "", "gpu_busy"},
    {kProgram, "", "No CUDA GPUs are available", "", "no_gpu"},
    {kProgram, "", "no CUDA-capable device", "", "no_gpu"},
    {kProgram, "", "CUDA_ERROR_NO_DEVICE", "", "no_gpu"},
    {kProgram, "", "invalid device ordinal", "", "no_gpu"},
    {kProgram, "", "CUDA_ERROR_INVALID_DEVICE", "", "no_gpu"},
    {kProgram, "", "Found no NVIDIA driver", "", "no_gpu"},
    // Compiled libraries: the loader's words, and what torch/utils/cpp_extension.py compares.
    {kProgram, "", "undefined symbol", "", "library_build"},
    {kProgram, "", "cannot open shared object file", "libcudart", "library_build"},
    {kProgram, "", "cannot open shared object file", "libcublas", "library_build"},
    {kProgram, "", "cannot open shared object file", "libcudnn", "library_build"},
    {kProgram, "", "cannot open shared object file", "libcusparse", "library_build"},
    {kProgram, "", "cannot open shared object file", "libnvrtc", "library_build"},
    {kProgram, "", "cannot open shared object file", "libnvJitLink", "library_build"},
    {kProgram, "", "cannot open shared object file", "libc10", "library_build"},
    {kProgram, "", "cannot open shared object file", "libtorch", "library_build"},
    {kProgram, "", "detected CUDA version", "", "library_build"},
    {kProgram, "", "does not match the version torch was compiled with", "", "library_build"},
    // Triton's OutOfResources ("out of resource: shared memory, Required: ..."), ptxas.
    {kProgram, "", "out of resource: shared memory", "", "kernel_shared_memory"},
    {kProgram, "OutOfResources", "shared memory", "", "kernel_shared_memory"},
    {kProgram, "", "uses too much shared data", "", "kernel_shared_memory"},
    // vLLM's worker and cache configuration, SGLang's model runner.
    {"A1 X1 B1 X2", "", "desired GPU memory utilization", "", "engine_no_room"},
    {kProgram, "", "memory for the cache blocks", "", "engine_cache"},
    {kProgram, "", "stored in KV cache", "", "engine_cache"},
    {kProgram, "", "KV cache is needed", "", "engine_cache"},
    {kProgram, "", "KV cache is larger than", "", "engine_cache"},
    {kProgram, "", "Not enough memory", "mem-fraction-static", "engine_cache"},
    {"B1 X2", "", "gpu_memory_utilization", "", "engine_share"},
    {"B1 X2", "", "mem-fraction-static", "", "engine_share"},
    // slurmstepd/task.c, for the program of a step.
    {kProgram, "", "execve(): ", "No such file or directory", "exec_missing"},
    {kProgram, "", "execve(): ", "Permission denied", "exec_denied"},
    {kProgram, "", "execve(): ", "Exec format error", "exec_format"},
    // slurm/src: srun, sbatch and salloc about what slurmctld refuses.
    {kProgram, "", "Unable to create step for job", "", "slurm_refuses"},
    {kProgram, "", "Unable to allocate resources: ", "", "slurm_refuses"},
    {kProgram, "", "Batch job submission failed: ", "", "slurm_refuses"},
    // EFBIG of write(2): Python ignores the SIGXFSZ that comes with it.
    {kProgram, "", "[Errno 27]", "", "file_size_limit"},
    // EAGAIN of pthread_create(3), as CPython says it.
    {kProgram, "", "can't start new thread", "", "thread_limit"},
    // Shared memory: shm_open with O_EXCL, and what a full /dev/shm refuses.
    {kProgram, "FileExistsError", "/dev/shm", "", "stale_segment"},
    {kProgram, "FileExistsError", "'/psm_", "", "stale_segment"},
    {kProgram, "FileExistsError", "'/torch_", "", "stale_segment"},
    {kProgram, "FileExistsError", "_locals'", "", "stale_segment"},  // mosaicml-streaming
    {"X21", "", "/dev/shm", "", "shared_memory_full"},
    {"X21", "", "</torch_", "", "shared_memory_full"},
    {"X21", "", "shared memory", "", "shared_memory_full"},
    // The kernel of a path whose client is gone: FUSE, Lustre.
    {"X21", "", "Transport endpoint is not connected", "", "mount_gone"},
    {"X21", "", "endpoint shutdown", "", "mount_gone"},
    // The hub's addresses for writing, huggingface_hub/hf_api.py, and its answer to them.
    {kProgram, "", "/preupload/", "403 ", "upload_refused"},
    {kProgram, "", "/preupload/", "401 ", "upload_refused"},
    {kProgram, "", "/api/repos/create", "403 ", "upload_refused"},
    {kProgram, "", "/api/repos/create", "401 ", "upload_refused"},
    {kProgram, "", "/commit/", "403 ", "upload_refused"},
    // Object stores about a token that was good before.
    {kProgram, "", "(ExpiredToken)", "", "credentials_expired"},
    {kProgram, "", "ExpiredTokenException", "", "credentials_expired"},
    {kProgram, "", "oken has expired", "", "credentials_expired"},
    {kProgram, "", "Token has been expired or revoked", "", "credentials_expired"},
    // Orbax, Flax: what is on disk has another structure than what is asked for.
    {kPrograms, "", "tree structures do not match", "", "checkpoint_mismatch"},
    // NumPy about a file that is mapped or read by an index of its own.
    {kProgram, "", "no greater than buffer length", "", "data_file_short"},
    {kProgram, "", "mmap length is greater than file size", "", "data_file_short"},
    // torch/serialization.py, torch/_weights_only_unpickler.py.
    {kPrograms, "", "Weights only load failed", "", "weights_only"},
    {kPrograms, "", "WeightsUnpickler error", "", "weights_only"},
    // tsl's coordination service, below jax.distributed.
    {"A1 X1 C1 C2 X5", "", "Barrier timed out", "", "coordination_barrier"},
    {"A1 X1 C1 C2 X5", "", "BarrierTimedOut", "", "coordination_barrier"},
    {"A1 X1 C1", "", "PjRT_Client_Connect", "", "coordination_barrier"},
    {"A1 X1 C1", "", "RegisterTask", "DEADLINE_EXCEEDED", "coordination_barrier"},
    // torch/utils/data/dataloader.py: a worker is gone, and no signal was seen.
    {kProgram, "", "DataLoader worker (pid", "exited unexpectedly", "loader_worker_gone"},
    // safetensors/src/tensor.rs: the length of the header is not one.
    {kPrograms, "SafetensorError", "eader", "", "broken_weights"},
    {kPrograms, "SafetensorError", "MetadataIncompleteBuffer", "", "broken_weights"},
    // NCCL's init.cc.
    {"A1 X1 C1 X5", "", "Duplicate GPU detected", "", "duplicate_gpu"},
    // transformers/trainer.py: what an evaluation returns begins with "eval_".
    {kProgram, "KeyError", "'eval_", "", "metric_absent"},
    {kProgram, "KeyError", "metric_for_best_model", "", "metric_absent"},
    // torch/utils/cpp_extension.py: the compiler's own words stand above.
    {kProgram, "", "Error building extension", "", "extension_build"},
    {kProgram, "", "DNN library is not found", "", "cudnn_absent"},
    {kProgram, "", "Could not create cudnn handle", "", "cudnn_absent"},
    // aiohttp, below fsspec and datasets: what is streamed over the network.
    {kProgram, "ClientPayloadError", "", "", "stream_broke"},
    {kProgram, "ServerDisconnectedError", "", "", "stream_broke"},
    {kProgram, "ClientOSError", "", "", "stream_broke"},
    {kProgram, "FSTimeoutError", "", "", "stream_broke"},
    {kProgram, "BrokenProcessPool", "terminated abruptly", "", "loader_worker_gone"},
    {kProgram, "", "subprocesses has abruptly died", "", "loader_worker_gone"},
    // Sockets of the program's own.
    {kProgram, "", "Address already in use", "", "port_held"},
    {kProgram, "", "address already in use", "", "port_held"},
    {kProgram, "", "EADDRINUSE", "", "port_held"},
    {kProgram, "", "Connection refused", "wandb", "tracking_absent"},
    {kProgram, "", "initialization has timed out", "wandb", "tracking_absent"},
    {kProgram, "", "Connection refused", "mlflow", "tracking_absent"},
    {kProgram, "", "Connection refused", "/api/2.0/", "tracking_absent"},
    {kProgram, "", "Connection refused", "", "server_absent"},
    {kProgram, "ConnectionRefusedError", "", "", "server_absent"},
    {kProgram, "", "failed to connect to all addresses", "", "server_absent"},
    {kProgram, "", "server can't be reached", "", "server_absent"},  // TRL's client of vLLM
};

// Public hubs are always there: who is refused by one has no way to it, or a wrong proxy.
constexpr std::string_view kHubs[] = {"huggingface.co", "hf.co",    "github.com",
                                      "amazonaws.com",  "pypi.org", "googleapis.com"};

bool IsOf(std::string_view code, std::string_view codes) {
  for (size_t at = 0; at < codes.size();) {
    const size_t end = std::min(codes.find(' ', at), codes.size());
    if (codes.substr(at, end - at) == code) return true;
    at = end + 1;
  }
  return false;
}

std::string_view LastComponent(std::string_view type) {
  return type.substr(type.rfind('.') + 1);  // npos + 1 is 0
}

bool Contains(const logs::Incident& incident, std::string_view words) {
  const auto in = [words](std::string_view text) {
    return text.find(words) != std::string_view::npos;
  };
  if (in(incident.message) || in(incident.line) || in(incident.exception_type) ||
      in(incident.cause_type) || in(incident.cause_message))
    return true;
  return std::any_of(incident.quotes.begin(), incident.quotes.end(), [&](const logs::Quote& quote) {
    const bool says =
        quote.role == logs::QuoteRole::kMessage || quote.role == logs::QuoteRole::kCause;
    return says && in(quote.line);
  });
}

bool Fits(const Row& row, const logs::Incident& incident) {
  if (!row.type.empty() && LastComponent(incident.exception_type) != row.type &&
      LastComponent(incident.cause_type) != row.type)
    return false;
  return Contains(incident, row.words) && Contains(incident, row.also);
}

bool IsRefusedByHub(std::string_view advice, const logs::Incident& incident) {
  return advice == "server_absent" &&
         std::any_of(std::begin(kHubs), std::end(kHubs),
                     [&](std::string_view hub) { return Contains(incident, hub); });
}

// What a program raises against itself in the course of a crash is no decision to end.
bool IsCrash(int32_t signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGILL ||
         signal == SIGFPE || signal == SIGTRAP || signal == SIGSYS;
}

bool SentToItself(const JobFeatures& f, const Cause& primary, const Finding& finding) {
  const Cause* const sent = FindSender(f, primary);
  return sent != nullptr && FieldOf(*sent, "sent_by") == "itself" && finding.signal != 0 &&
         !IsCrash(finding.signal);
}

}  // namespace

std::string_view AdviceOf(std::string_view code, const Finding& finding, const JobFeatures& f) {
  if (!finding.advice.empty()) return finding.advice;
  const Cause* const primary = f.Primary();
  if (primary == nullptr) return {};
  // Of what began it only: another one that the log holds may have another cause.
  if (std::find(finding.root.begin(), finding.root.end(), primary->evidence) == finding.root.end())
    return {};
  // Python ends with a SIGINT of its own after a KeyboardInterrupt, whoever caused that.
  if (IsOf(code, "A2 X20") && SentToItself(f, *primary, finding))
    return finding.signal == SIGINT ? "interrupted_itself" : "killed_itself";
  const logs::Incident& incident = primary->incident();
  if (incident.sub == subs::kNoContainer && incident.frame == logs::FrameKind::kAssetLoad)
    return "image_absent";
  if (IsOf(code, kProgram) && FieldOf(*primary, "worker_gone") == "yes")
    return "loader_worker_gone";
  if (code == "X3") return FieldOf(*primary, "error") == "device_assert" ? "device_assert" : "";
  for (const Row& row : kRows) {
    if (!IsOf(code, row.codes) || !Fits(row, incident)) continue;
    return IsRefusedByHub(row.advice, incident) ? std::string_view() : row.advice;
  }
  return {};
}

}  // namespace rankscope::engine
