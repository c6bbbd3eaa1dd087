// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/trainer/rank.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/trainer/model.h"
#include "tests/support/trainer/process_group.h"

namespace sample_trainer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr float kMomentum = 0.9f;
constexpr size_t kBatch = 128;
constexpr int kSamples = 4096;
constexpr uint32_t kSeed = 1234;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

void StrikeIfDue(const Fault& fault, int rank, int step) {
  if (rank != fault.rank || step != fault.step) return;
  switch (fault.kind) {
    case FaultKind::kException:
      throw std::runtime_error("batch of step " + std::to_string(step) + " has an empty mask");
    case FaultKind::kSegv: {
      volatile int* volatile nowhere = nullptr;
      *nowhere = 1;
      break;
    }
    case FaultKind::kKill:
      kill(getpid(), SIGKILL);
      break;
    case FaultKind::kHang:
      while (true) pause();
    case FaultKind::kExit:
      _exit(fault.code);
    default:
      break;
  }
}

void Clip(std::span<float> gradient, float limit) {
  float squares = 0;
  for (const float value : gradient) squares += value * value;
  const float norm = std::sqrt(squares);
  if (norm <= limit) return;
  for (float& value : gradient) value *= limit / norm;
}

}  // namespace

int TrainAsRank(const Options& options, int rank, int listen_fd) {
  const int world_size = std::stoi(Environment("WORLD_SIZE"));
  const bool speaks = rank == 0 && options.fault.kind != FaultKind::kNoProgress;
  const std::vector<Sample> samples =
      options.data.empty() ? SyntheticSamples(kSamples, kSeed) : ReadSamples(options.data);

  if (speaks) std::printf("initializing process group: backend=tcp world_size=%d\n", world_size);
  ProcessGroup group(rank, world_size, Environment("MASTER_ADDR"),
                     std::stoi(Environment("MASTER_PORT")), listen_fd, options.timeout_s);
  Model model(kSeed);
  int step = 0;
  if (!options.resume.empty()) {
    step = LoadCheckpoint(options.resume, model.parameters());
    if (speaks) std::printf("resumed from %s at step %d\n", options.resume.c_str(), step);
  }
  if (speaks) {
    std::printf("model: %d parameters, %zu samples, %d steps\n", kParameters, samples.size(),
                options.steps);
  }

  // One vector so that one all-reduce a step carries the gradient and, last, the loss.
  std::vector<float> reduced(kParameters + 1);
  std::vector<float> velocity(kParameters);
  std::vector<Sample> batch(kBatch);
  while (step < options.steps) {
    const Clock::time_point begin = Clock::now();
    ++step;
    for (size_t i = 0; i < kBatch; ++i) {
      const size_t position =
          (static_cast<size_t>(step) * kBatch + i) * static_cast<size_t>(world_size);
      batch[i] = samples[(position + static_cast<size_t>(rank)) % samples.size()];
    }
    reduced[kParameters] = model.LossAndGradient(batch, std::span(reduced).first(kParameters));
    StrikeIfDue(options.fault, rank, step);
    group.AllReduceMean(reduced);

    const std::span<float> gradient = std::span(reduced).first(kParameters);
    if (options.clip > 0) Clip(gradient, options.clip);
    const float lr =
        options.warmup > 0 && step < options.warmup
            ? options.lr * static_cast<float>(step) / static_cast<float>(options.warmup)
            : options.lr;
    const std::span<float> parameters = model.parameters();
    for (size_t i = 0; i < kParameters; ++i) {
      velocity[i] = kMomentum * velocity[i] + gradient[i];
      parameters[i] -= lr * velocity[i];
    }

    std::this_thread::sleep_until(begin + std::chrono::milliseconds(options.step_ms));
    const Fault& fault = options.fault;
    if (fault.kind == FaultKind::kSleep && rank == fault.rank && step >= fault.step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.ms));
    }
    const double loss =
        std::isnan(reduced[kParameters]) ? NAN : reduced[kParameters];  // never "-nan"
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (speaks && (step % options.log_every == 0 || step == options.steps)) {
      std::printf("step %d loss %.4f lr %g step_time %.3fs\n", step, loss, static_cast<double>(lr),
                  took.count());
    }
    if (rank == 0 && options.save_every > 0 && step % options.save_every == 0) {
      SaveCheckpoint(options.checkpoint, step, parameters);
      if (speaks)
        std::printf("saved checkpoint to %s at step %d\n", options.checkpoint.c_str(), step);
    }
  }
  if (speaks) std::printf("training finished\n");
  return 0;
}

}  // namespace sample_trainer
