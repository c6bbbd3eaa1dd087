// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A rank that launches at a rate: launch_loop FOLDER LAUNCHES_PER_STEP STEPS
//
// Each step of 10 ms launches through the runtime of the stub libraries in FOLDER and waits out the
// rest of 10 ms less what launches take unprobed, so that what probes add makes the step longer.
// Prints "step MICROSECONDS" (mean) and "launches MICROSECONDS" (of a step, median) once a second.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Dim3 {
  unsigned x, y, z;
};
using Launch = int (*)(void*, Dim3, Dim3, void**, size_t, void*);

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string folder = argv[1];
  const int launches = std::atoi(argv[2]);
  const int steps = std::atoi(argv[3]);
  dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const runtime = dlopen((folder + "/libcudart.so.12").c_str(), RTLD_NOW);
  const auto launch =
      reinterpret_cast<Launch>(runtime != nullptr ? dlsym(runtime, "cudaLaunchKernel") : nullptr);
  if (launch == nullptr) {
    std::fprintf(stderr, "no stub libraries in %s\n", folder.c_str());
    return 1;
  }
  constexpr int64_t kStepNs = 10'000'000;
  constexpr int kReport = 100;
  std::vector<int64_t> took;
  int64_t begin = NowNs();
  for (int step = 1; step <= steps; ++step) {
    const int64_t before = NowNs();
    for (int i = 0; i < launches; ++i) launch(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
    took.push_back(NowNs() - before);
    const timespec rest{0, kStepNs - launches * int64_t{300}};
    nanosleep(&rest, nullptr);
    if (step % kReport != 0) continue;
    std::nth_element(took.begin(), took.begin() + kReport / 2, took.end());
    double mean = 0;
    for (const int64_t ns : took) mean += static_cast<double>(ns) / kReport;
    const int64_t now = NowNs();
    std::printf("step %.2f launches %.2f mean %.2f\n",
                static_cast<double>(now - begin) / kReport / 1e3,
                static_cast<double>(took[kReport / 2]) / 1e3, mean / 1e3);
    std::fflush(stdout);
    took.clear();
    begin = now;
  }
  return 0;
}
