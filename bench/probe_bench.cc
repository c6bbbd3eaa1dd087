// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a probe costs a call: bench/probe_bench [FOLDER of the stub libraries]
//
// Calls functions of our own, and entries of the stub libraries, with and without each program on
// each kind of first instruction, all in one run, and prints a table. Needs root.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exporter/probes/attach/elf_symbols.h"
#include "exporter/probes/attach/probe_cost.h"
#include "exporter/probes/attach/tracked_map.h"
#include "exporter/probes/attach/uprobe_link.h"
#include "exporter/probes/calls/call_object.h"
#include "exporter/processes/process_table.h"

namespace {

using namespace rankscope;
using namespace rankscope::probes;

// Rounds that fit into a slice of the scheduler, so that what else the machine does spoils few.
constexpr int kRounds = 101;
constexpr int kCalls = 200;

double NanosecondsPerCall(CalledSite function) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int call = 0; call < kCalls; ++call) function();
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    rounds.push_back(took.count() / kCalls);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

int LoadEmpty(AttachVia via) {
  const bpf_insn nothing[] = {{BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0},
                              {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
  bpf_attr attr{};
  attr.prog_type = BPF_PROG_TYPE_KPROBE;
  attr.expected_attach_type = ExpectedAttachType(via);
  attr.insns = reinterpret_cast<uint64_t>(nothing);
  attr.insn_cnt = 2;
  attr.license = reinterpret_cast<uint64_t>("GPL");
  return static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr));
}

struct Program {
  const char* name;
  int entry;
  int exit;
  uint64_t cookie;
};

struct Place {
  std::string name;
  std::string path;
  uint64_t offset;
  CalledSite function;
};

double Probed(AttachVia via, const Program& program, const Place& place) {
  const ProbePoint point{place.offset, program.cookie};
  const Attached entry = AttachProbes(via, program.entry, place.path, {&point, 1}, false);
  Attached exit;
  if (program.exit >= 0) {
    exit = AttachProbes(via, program.exit, place.path, {&point, 1}, true);
  }
  return entry.points == 1 ? NanosecondsPerCall(place.function) : -1;
}

// An entry of a library where the resolver puts a probe, and at its first instruction.
void AddLibrary(const std::string& path, const char* symbol, std::vector<Place>& places) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* const function = library != nullptr ? dlsym(library, symbol) : nullptr;
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (function == nullptr || !file) return;
  const ReadAt read = [&file](uint64_t offset, std::span<std::byte> into) -> size_t {
    const ssize_t n = pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));
    return n < 0 ? 0 : static_cast<size_t>(n);
  };
  const auto elf = ReadElf(read, {symbol});
  if (!elf || elf->functions.empty()) return;
  const ElfFunction& found = elf->functions.front();
  const Site site = PlaceProbe(found.code);
  const auto call = reinterpret_cast<CalledSite>(function);
  places.push_back({std::string(symbol) + " +" + std::to_string(site.offset) +
                        " (placed: " + std::string(SiteClassName(site.site)) + ")",
                    path, found.offset + site.offset, call});
  if (site.offset != 0) {
    places.push_back({std::string(symbol) + " +0 (as a blind probe)", path, found.offset, call});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const AttachVia via = BestAttach();
  const auto table = std::make_shared<collectors::ProcessTable>();
  TrackedMap tracked(table);
  const auto map = tracked.Open();
  if (!map) {
    std::fprintf(stderr, "%s\n", map.error().c_str());
    return 1;
  }
  const auto cuda = CallObject::Load(CallObjectKind::kCuda, *map, via, [](const rs_call&) {});
  const auto nccl = CallObject::Load(CallObjectKind::kNccl, *map, via, [](const rs_call&) {});
  if (!cuda || !nccl) {
    std::fprintf(stderr, "%s\n", (cuda ? nccl : cuda).error().c_str());
    return 1;
  }
  const CallPrograms c = CallObject::Programs(*cuda);
  const CallPrograms n = CallObject::Programs(*nccl);
  const CallRow launch{"", RS_CUDA_LAUNCH};
  const CallRow sync{"", RS_CUDA_SYNC};
  const CallRow copy{"", RS_CUDA_COPY, 1, 3, 0, 4};
  const CallRow reduce{"", RS_NCCL_COLLECTIVE, 0, 3, 4, 6};
  const std::vector<Program> programs = {
      {"empty", LoadEmpty(via), -1, 0},
      {"launch", c.launch, -1, CookieOf(launch, 0)},
      {"launch, timed", c.launch, c.launch_end, CookieOf(launch, 0)},
      {"synchronisation", c.begin, c.end, CookieOf(sync, 0)},
      {"copy", c.begin, c.end, CookieOf(copy, 0)},
      {"collective", n.begin, n.end, CookieOf(reduce, 0)},
  };
  std::vector<Place> places;
  for (const OwnSite& site : OwnSites()) {
    places.push_back(
        {std::string(SiteClassName(site.site)), "/proc/self/exe", site.offset, site.function});
  }
  const std::string folder = argc > 1 ? argv[1] : "build/tests/support/stub_gpu/lib";
  setenv("LD_LIBRARY_PATH", folder.c_str(), 0);
  AddLibrary(folder + "/libcuda.so.1", "cuCtxSynchronize", places);
  AddLibrary(folder + "/libcudart.so.12", "cudaGetLastError", places);

  std::printf("Nanoseconds that a probe adds to a call, median of %d rounds; %s.\n\n", kRounds,
              via == AttachVia::kMulti ? "multi-attach link" : "perf events");
  std::printf("| first instruction | call | ");
  for (const Program& program : programs) std::printf("%s | ", program.name);
  std::printf("untracked, launch | launch: of a nop's |\n| --- |");
  for (size_t i = 0; i < programs.size() + 3; ++i) std::printf(" ---: |");
  std::printf("\n");
  double nop = 0;
  for (const Place& place : places) {
    const double bare = NanosecondsPerCall(place.function);
    std::printf("| %s | %.1f |", place.name.c_str(), bare);
    c.track_self(true);
    n.track_self(true);
    double of_launch = 0;
    for (const Program& program : programs) {
      const double added = Probed(via, program, place) - bare;
      if (std::strcmp(program.name, "launch") == 0) of_launch = added;
      std::printf(" %.0f |", added);
    }
    c.track_self(false);
    n.track_self(false);
    if (nop == 0) nop = of_launch;
    std::printf(" %.0f | %.2f |\n", Probed(via, programs[1], place) - bare, of_launch / nop);
  }
  return 0;
}
