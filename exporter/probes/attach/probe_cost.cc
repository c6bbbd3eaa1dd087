// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/probe_cost.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

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

// The best of these rounds: what else the machine does only adds.
constexpr int kRounds = 7;
constexpr int kCalls = 200;

double SecondsPerCall(CalledSite function) {
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
        auto* const found = static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || found->address < begin ||
              found->address - begin >= segment.p_filesz) {
            continue;
          }
          found->offset = found->address - begin + segment.p_offset;
        }
        return 1;  // the first is the program itself
      },
      &search);
  return search.offset;
}

std::optional<SiteCost> MeasureOne(AttachVia via, int launch, int launch_end, uint64_t cookie,
                                   const OwnSite& site) {
  const ProbePoint point{site.offset, cookie};
  const double bare = SecondsPerCall(site.function);
  const Attached entry = AttachProbes(via, launch, "/proc/self/exe", {&point, 1}, false);
  if (entry.points == 0) return std::nullopt;
  const double probed = SecondsPerCall(site.function);
  const Attached exit = AttachProbes(via, launch_end, "/proc/self/exe", {&point, 1}, true);
  const double both = exit.points == 0 ? probed : SecondsPerCall(site.function);
  return SiteCost{std::max(probed - bare, 0.0), std::max(both - probed, 0.0)};
}

}  // namespace

std::vector<OwnSite> OwnSites() {
  std::vector<OwnSite> sites;
#if defined(__x86_64__)
  for (const auto& [site, function] : {std::pair{SiteClass::kNop, &rankscope_site_nop},
                                       std::pair{SiteClass::kPush, &rankscope_site_push},
                                       std::pair{SiteClass::kEmulated, &rankscope_site_jump},
                                       std::pair{SiteClass::kSingleStep, &rankscope_site_step}}) {
    const auto offset = OffsetInFile(reinterpret_cast<const void*>(function));
    if (offset) sites.push_back({site, function, *offset});
  }
#endif
  return sites;
}

std::optional<SiteCosts> MeasureSites(AttachVia via, int launch, int launch_end, uint64_t cookie) {
  SiteCosts costs{};
  const std::vector<OwnSite> sites = OwnSites();
  if (sites.empty()) return std::nullopt;
  for (const OwnSite& site : sites) {
    const auto cost = MeasureOne(via, launch, launch_end, cookie, site);
    if (!cost) return std::nullopt;
    costs[static_cast<size_t>(site.site)] = *cost;
  }
  costs[static_cast<size_t>(SiteClass::kUnknown)] =
      costs[static_cast<size_t>(SiteClass::kSingleStep)];
  return costs;
}

}  // namespace rankscope::probes
