// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/trainer/rank.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/stub_gpu/trainer/libraries.h"
#include "tests/support/stub_gpu/trainer/watchdog.h"
#include "tests/support/trainer/process_group.h"

namespace stub_trainer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFloat = 7;  // ncclFloat32
constexpr int kSum = 0;

std::string Environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

void SleepMilliseconds(double ms) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
}

void Check(Result result, const char* call) {
  if (result == stub_gpu::kSuccess) return;
  throw std::runtime_error(std::string(call) + " failed with " + std::to_string(result));
}

class Rank {
 public:
  Rank(const Script& script, int rank, int listen_fd)
      : script_(script),
        rank_(rank),
        ranks_(static_cast<int>(script.ranks)),
        store_(rank, ranks_, Environment("MASTER_ADDR", "127.0.0.1"),
               std::stoi(Environment("MASTER_PORT", "29500")), listen_fd, 600) {}

  int Train() {
    if (script_.late_ms > 0) SleepMilliseconds(static_cast<double>(script_.late_ms));
    libraries_ = std::make_unique<Libraries>(Environment("STUB_GPU_LIBRARIES", STUB_GPU_FOLDER));
    Prepare();
    if (script_.watchdog != 0) watchdog_ = std::make_unique<Watchdog>(*libraries_);
    if (rank_ == 0 && script_.print > 0) std::puts("tokens per iteration will be: 491,520");
    for (int64_t step = 0; step < script_.steps; ++step) {
      const Clock::time_point begin = Clock::now();
      for (const Happening& happening : script_.happenings) {
        if (happening.Due(rank_, step)) Undergo(happening, step);
      }
      Step();
      const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
      if (rank_ == 0 && script_.print > 0 && step % script_.print == 0)
        std::printf("iter %ld: loss %.4f, time %.2fms, mfu 30.00%%\n", step, Loss(step),
                    took.count());
    }
    watchdog_.reset();
    libraries_->ncclCommDestroy(communicator_);
    if (rank_ == 0 && script_.print > 0) std::puts("training done");
    return 0;
  }

 private:
  void Prepare() {
    Check(libraries_->cudaSetDevice(rank_), "cudaSetDevice");
    Check(libraries_->cudaStreamCreate(&stream_), "cudaStreamCreate");
    Allocate(static_cast<uint64_t>(script_.memory_bytes));
    SetKernelTime(1);
    // Rank 0's id to all, through the store: as many floats as it has bytes, summed over zeros.
    UniqueId id{};
    std::vector<float> bytes(sizeof(id.internal));
    if (rank_ == 0) {
      Check(libraries_->ncclGetUniqueId(&id), "ncclGetUniqueId");
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<float>(id.internal[i]) * static_cast<float>(ranks_);
    }
    store_.AllReduceMean(bytes);
    for (size_t i = 0; i < bytes.size(); ++i)
      id.internal[i] = static_cast<char>(std::lround(bytes[i]));
    Check(libraries_->ncclCommInitRank(&communicator_, ranks_, id, rank_), "ncclCommInitRank");
  }

  void SetKernelTime(double factor) {
    libraries_->stubGpuSetKernelNanoseconds(
        static_cast<int64_t>(static_cast<double>(script_.kernel_us) * 1000 * factor));
  }

  bool Allocate(uint64_t bytes) {
    DevicePointer pointer = 0;
    return libraries_->cudaMalloc(&pointer, bytes) == stub_gpu::kSuccess;
  }

  void Undergo(const Happening& happening, int64_t step) {
    switch (happening.act) {
      case Act::kSleep:
        return SleepMilliseconds(happening.value);
      case Act::kSave:
        if (rank_ == 0 && script_.print > 0) std::puts("saving checkpoint to out");
        return SleepMilliseconds(happening.value);
      case Act::kEvaluate:
        SleepMilliseconds(happening.value);
        if (rank_ == 0 && script_.print > 0)
          std::printf("step %ld: train loss %.4f, val loss %.4f\n", step, Loss(step),
                      Loss(step) + 0.1);
        return;
      case Act::kLeave:
        while (true) pause();
      case Act::kSpin:
        while (true) (void)Clock::now();  // no system call: the vDSO answers
      case Act::kBlock:
        return libraries_->stubNcclBlock();
      case Act::kSlow:
        return SetKernelTime(happening.value);
      case Act::kAllocate:
        if (!Allocate(static_cast<uint64_t>(happening.value)) && !happening.caught)
          OutOfMemory(happening.value);
        return;
      case Act::kFault:
        return libraries_->stubGpuFault(static_cast<Result>(happening.value));
      case Act::kExit:
        std::fflush(nullptr);
        _exit(static_cast<int>(happening.value));
      case Act::kRaise:
        return Raise(happening.file);
    }
  }

  static void Raise(const std::string& path) {
    std::ifstream file(path);
    if (!file) return;
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::fflush(stdout);
    std::fwrite(text.data(), 1, text.size(), stderr);
    _exit(1);
  }

  [[noreturn]] void OutOfMemory(double bytes) {
    if (script_.print == 0) _exit(1);  // not a word
    char text[160];
    std::snprintf(
        text, sizeof(text),
        "CUDA out of memory. Tried to allocate %.2f GiB (GPU %d; 80.00 GiB total capacity)",
        bytes / (1 << 30), rank_);
    throw std::runtime_error(text);
  }

  void Launch(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      Check(libraries_->cudaLaunchKernel(nullptr, {1, 1, 1}, {256, 1, 1}, nullptr, 0, stream_),
            "cudaLaunchKernel");
      if (script_.synchronize_launches != 0)
        Check(libraries_->cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
  }

  void Step() {
    SleepMilliseconds(static_cast<double>(script_.step_ms));
    libraries_->cudaMemcpyAsync(nullptr, nullptr, static_cast<size_t>(script_.to_device_bytes),
                                MemcpyKind::kHostToDevice, stream_);
    const int64_t optimizer = script_.launches / 4;
    Launch(script_.launches - optimizer);
    for (int64_t i = 0; i < script_.graphs; ++i)
      Check(libraries_->cudaGraphLaunch(nullptr, stream_), "cudaGraphLaunch");
    for (int64_t i = 0; i < script_.collectives; ++i) {
      Check(libraries_->ncclAllReduce(nullptr, nullptr,
                                      static_cast<size_t>(script_.collective_bytes) / sizeof(float),
                                      kFloat, kSum, communicator_, stream_),
            "ncclAllReduce");
      if (watchdog_ != nullptr) watchdog_->Watch(stream_);
    }
    Launch(optimizer);
    // loss.item()
    libraries_->cudaMemcpyAsync(nullptr, nullptr, sizeof(float), MemcpyKind::kDeviceToHost,
                                stream_);
    Check(libraries_->cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  static double Loss(int64_t step) {
    const auto x = static_cast<double>(step);
    return 2.5 + 4 * std::exp(-x / 60) + 0.01 * std::sin(x * 12.9898);
  }

  const Script& script_;
  int rank_;
  int ranks_;
  sample_trainer::ProcessGroup store_;
  std::unique_ptr<Libraries> libraries_;
  std::unique_ptr<Watchdog> watchdog_;
  Handle stream_ = nullptr;
  Handle communicator_ = nullptr;
};

}  // namespace

int TrainAsRank(const Script& script, int rank, int listen_fd) {
  return Rank(script, rank, listen_fd).Train();
}

}  // namespace stub_trainer
