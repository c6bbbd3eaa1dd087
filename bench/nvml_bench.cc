// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a look at a GPU takes, every field that the source nvml reads: nvml_bench [LIBRARY] [LOOKS]
//
// One thread for each GPU, as the source has, each with a look every 100 ms; the first look, which
// finds the device, does not count. Prints wall and CPU time of a look. LIBRARY is the driver's
// (libnvidia-ml.so.1), or the stand-in of tests/support/fake_nvml with FAKE_NVML_SCRIPT: then it is
// what the product itself costs, and the driver nothing.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "exporter/gpu/nvml_device.h"
#include "exporter/gpu/nvml_library.h"

namespace rankscope::collectors::nvml {
namespace {

struct Took {
  double wall_us = 0;
  double cpu_us = 0;
};

double Microseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

std::vector<Took> Watch(const std::shared_ptr<const Library>& library, int32_t index, int looks) {
  DeviceReader reader(library, index);
  std::vector<Took> out;
  for (int i = 0; i <= looks; ++i) {
    const double wall = Microseconds(CLOCK_MONOTONIC), cpu = Microseconds(CLOCK_THREAD_CPUTIME_ID);
    const GpuStatus status = reader.Look(Timestamp{static_cast<int64_t>(wall * 1e3)});
    const Took took{Microseconds(CLOCK_MONOTONIC) - wall,
                    Microseconds(CLOCK_THREAD_CPUTIME_ID) - cpu};
    if (status.state != GpuState::kUp) {
      std::fprintf(stderr, "nvml_bench: GPU %d: %s\n", index, status.reason.c_str());
      return {};
    }
    if (i > 0) out.push_back(took);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return out;
}

void Print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  std::printf("%s, us: median %.0f, p99 %.0f, most %.0f\n", what, at(0.5), at(0.99), at(1));
}

int Run(const std::string& path, int looks) {
  const Opening opening = Library::Open(path);
  uint32_t count = 0;
  if (opening.library != nullptr) opening.library->Call(&Functions::device_count, &count);
  if (count == 0) {
    std::fprintf(stderr, "nvml_bench: no GPU by %s: %s\n", path.c_str(), opening.reason.c_str());
    return 1;
  }
  std::vector<std::vector<Took>> took(count);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back(
        [&, i] { took[i] = Watch(opening.library, static_cast<int32_t>(i), looks); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> wall, cpu;
  for (const std::vector<Took>& of_gpu : took) {
    for (const Took& look : of_gpu) {
      wall.push_back(look.wall_us);
      cpu.push_back(look.cpu_us);
    }
  }
  if (wall.empty()) return 1;
  std::printf("%zu looks at %u GPUs\n", wall.size(), count);
  Print("wall time of a look", wall);
  Print("CPU time of a look", cpu);
  return 0;
}

}  // namespace
}  // namespace rankscope::collectors::nvml

int main(int argc, char** argv) {
  using namespace rankscope::collectors::nvml;
  return Run(argc > 1 ? argv[1] : kLibraryName, argc > 2 ? std::atoi(argv[2]) : 100);
}
