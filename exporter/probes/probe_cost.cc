// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/probe_cost.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#if defined(__x86_64__)
// Functions that begin as those of libraries do, one for each class, and do nothing else.
__asm__(R"(
  .text
  .balign 64
  .type rankscope_site_nop, @function
  rankscope_site_nop: nop
    ret
  .balign 64
  .type rankscope_site_push, @function
  rankscope_site_push: push %rbp
    pop %rbp
    ret
  .balign 64
  .type rankscope_site_jump, @function
  rankscope_site_jump: jmp 1f
  1: ret
  .balign 64
  .type rankscope_site_step, @function
  rankscope_site_step: xor %eax, %eax
    ret
)");
extern "C" {
void rankscope_site_nop();
void rankscope_site_push();
void rankscope_site_jump();
void rankscope_site_step();
}
#endif

namespace rankscope::probes {
namespace {

using Function = void (*)();

// The best of these rounds: what else the machine does only adds.
constexpr int kRounds = 7;
constexpr int kCalls = 200;

double SecondsPerCall(Function function) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int call = 0; call < kCalls; ++call) function();
    const std::chrono::duration<double> took = Clock::now() - begin;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

// Where the code at `address` lies in our own file.
std::optional<uint64_t> OffsetInFile(const void* address) {
  struct Search {
    uint64_t address;
    std::optional<uint64_t> offset;
  } search{reinterpret_cast<uint64_t>(address), std::nullopt};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* const search = static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || search->address < begin ||
              search->address - begin >= segment.p_filesz) {
            continue;
          }
          search->offset = search->address - begin + segment.p_offset;
        }
        return 1;  // the first is the program itself
      },
      &search);
  return search.offset;
}

std::optional<SiteCost> MeasureOne(AttachVia via, int launch, int launch_end, uint64_t cookie,
                                   Function function) {
  const auto offset = OffsetInFile(reinterpret_cast<const void*>(function));
  if (!offset) return std::nullopt;
  const ProbePoint point{*offset, cookie};
  const double bare = SecondsPerCall(function);
  const Attached entry = AttachProbes(via, launch, "/proc/self/exe", {&point, 1}, false);
  if (entry.points == 0) return std::nullopt;
  const double probed = SecondsPerCall(function);
  const Attached exit = AttachProbes(via, launch_end, "/proc/self/exe", {&point, 1}, true);
  const double both = exit.points == 0 ? probed : SecondsPerCall(function);
  return SiteCost{std::max(probed - bare, 0.0), std::max(both - probed, 0.0)};
}

}  // namespace

std::optional<SiteCosts> MeasureSites(AttachVia via, int launch, int launch_end, uint64_t cookie) {
#if defined(__x86_64__)
  constexpr std::array<Function, 4> kFunctions = {rankscope_site_nop, rankscope_site_push,
                                                  rankscope_site_jump, rankscope_site_step};
  SiteCosts costs{};
  for (size_t site = 0; site < kFunctions.size(); ++site) {
    const auto cost = MeasureOne(via, launch, launch_end, cookie, kFunctions[site]);
    if (!cost) return std::nullopt;
    costs[site] = *cost;
  }
  costs[static_cast<size_t>(SiteClass::kUnknown)] =
      costs[static_cast<size_t>(SiteClass::kSingleStep)];
  return costs;
#else
  static_cast<void>(via), static_cast<void>(launch), static_cast<void>(launch_end),
      static_cast<void>(cookie);
  return std::nullopt;
#endif
}

}  // namespace rankscope::probes
