// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/cuda_numbers.h"

#include <algorithm>

namespace rankscope::probes {
namespace {

static_assert(kLaunchGapSlots == RS_GAP_SLOTS);

constexpr double kNs = 1e-9;
// Launches of the runtime before it is decided whether its calls of the driver are seen.
constexpr uint64_t kEnoughLaunches = 256;
// A call that lasts this long is looked after: its thread may have ended inside.
constexpr int64_t kLongCallNs = 10'000'000'000;
constexpr uint64_t kAllGapsEvery = 60;  // looks, one a second

struct Inside {
  double oldest_seconds = 0;
  double total_seconds = 0;
};

// What began before the probes were on may have ended before, too.
Inside OfSlots(const rs_inside (&slots)[RS_SLOTS], int64_t now_ns, const LaunchWatch& watch,
               const ThreadLives& lives) {
  Inside inside;
  if (!watch.timed) return inside;
  for (const rs_inside& slot : slots) {
    const int64_t start_ns = static_cast<int64_t>(slot.start_ns);
    const int64_t age_ns = now_ns - start_ns;
    if (start_ns == 0 || start_ns < watch.timed_since_ns || age_ns < 0) continue;
    if (age_ns > kLongCallNs && lives && !lives(slot.thread)) continue;
    inside.oldest_seconds = std::max(inside.oldest_seconds, static_cast<double>(age_ns) * kNs);
    inside.total_seconds += static_cast<double>(age_ns) * kNs;
  }
  return inside;
}

}  // namespace

double CudaNumbers::LargestGap(const rs_cuda_counts& counts, int64_t now_ns,
                               const LaunchWatch& watch) const {
  double largest = 0;
  for (const rs_gap& gap : counts.gaps) {
    const int64_t end = static_cast<int64_t>(gap.end_ns);
    const int64_t begin = end - static_cast<int64_t>(gap.largest_ns);
    // What began while no probe was on is no gap.
    if (end <= looked_ns_ || begin < watch.since_ns) continue;
    largest = std::max(largest, static_cast<double>(gap.largest_ns) * kNs);
  }
  const int64_t until = watch.until_ns != 0 ? watch.until_ns : now_ns;
  const int64_t last = static_cast<int64_t>(counts.last_launch_ns);
  if (last >= watch.since_ns) largest = std::max(largest, static_cast<double>(until - last) * kNs);
  return largest;
}

// Launches are timed in short windows; between them they are taken to last as long.
void CudaNumbers::TimeLaunches(const rs_cuda_counts& counts) {
  const uint64_t launches = LaunchesOf(counts);
  if (counts.timed_launches > timed_launches_) {
    mean_launch_seconds_ = static_cast<double>(counts.launch_ns - timed_ns_) * kNs /
                           static_cast<double>(counts.timed_launches - timed_launches_);
  }
  launch_seconds_ += mean_launch_seconds_ * static_cast<double>(launches - launches_);
  launches_ = launches;
  timed_launches_ = counts.timed_launches;
  timed_ns_ = counts.launch_ns;
}

// All of them at first, so that each has a number, and now and then, for who did not know the
// process then; else those that rose: most ranks' gaps are of a few lengths.
void CudaNumbers::AddGaps(const rs_cuda_counts& counts, std::vector<Sample>& samples) {
  // Not between the writing of the two.
  const bool whole = counts.unwatched_ns != 0 && counts.last_launch_ns > counts.unwatched_ns;
  const uint64_t gap_ns = whole ? counts.last_launch_ns - counts.unwatched_ns : 0;
  const bool all = gap_looks_++ % kAllGapsEvery == 0;
  if (all || gap_ns > gap_ns_) {
    gap_ns_ = std::max(gap_ns_, gap_ns);
    samples.push_back({SignalId::kLaunchGapSeconds, static_cast<double>(gap_ns_) * kNs});
  }
  for (size_t slot = 0; slot < kLaunchGapSlots; ++slot) {
    if (!all && counts.gap_counts[slot] == gaps_[slot]) continue;
    gaps_[slot] = counts.gap_counts[slot];
    samples.push_back({LaunchGapSignal(slot), static_cast<double>(gaps_[slot])});
  }
}

std::vector<Sample> CudaNumbers::Take(const rs_cuda_counts& counts, int64_t now_ns,
                                      const LaunchWatch& watch, const ThreadLives& lives) {
  std::vector<Sample> samples;
  const auto add = [&samples](SignalId signal, double value) {
    samples.push_back({signal, value});
  };
  const auto count = [&add](SignalId signal, uint64_t value) {
    add(signal, static_cast<double>(value));
  };
  const auto seconds = [&add](SignalId signal, uint64_t ns) {
    add(signal, static_cast<double>(ns) * kNs);
  };
  // Where no launch of the runtime is seen again in the driver, those taken for it were others.
  const bool bypassed =
      counts.alone + counts.below >= kEnoughLaunches && counts.alone > counts.below;
  told_launches_ =
      std::max<uint64_t>(told_launches_, counts.launches + (bypassed ? counts.below : 0));
  count(SignalId::kKernelLaunches, told_launches_);
  count(SignalId::kGraphLaunches, counts.graphs);
  if (counts.last_launch_ns != 0) {
    add(SignalId::kLargestLaunchGapSeconds, LargestGap(counts, now_ns, watch));
    const int64_t until = watch.until_ns != 0 ? watch.until_ns : now_ns;
    const int64_t age = std::max<int64_t>(until - static_cast<int64_t>(counts.last_launch_ns), 0);
    add(SignalId::kLastLaunchAge, static_cast<double>(age) * kNs);
    AddGaps(counts, samples);
  }
  TimeLaunches(counts);
  if (counts.timed_launches != 0) add(SignalId::kLaunchSeconds, launch_seconds_);
  const Inside syncing = OfSlots(counts.syncing, now_ns, watch, lives);
  count(SignalId::kSyncCalls, counts.syncs);
  told_sync_seconds_ = std::max(told_sync_seconds_,
                                static_cast<double>(counts.sync_ns) * kNs + syncing.total_seconds);
  add(SignalId::kCudaSyncSeconds, told_sync_seconds_);
  add(SignalId::kOldestSyncSeconds, syncing.oldest_seconds);
  count(SignalId::kCopyCalls, counts.copies);
  seconds(SignalId::kCopySeconds, counts.copy_ns);
  count(SignalId::kCopiedBytes, counts.copied_bytes);
  count(SignalId::kCopiedToDeviceBytes, counts.to_device_bytes);
  count(SignalId::kCopiedToHostBytes, counts.to_host_bytes);
  seconds(SignalId::kAllocationSeconds, counts.allocation_ns);
  count(SignalId::kAllocatedBytes, counts.allocated_bytes);
  count(SignalId::kAllocationFailures, counts.failed_allocations);
  if (counts.failed_allocations != 0) {
    count(SignalId::kLastFailedAllocationBytes, counts.last_failed_bytes);
  }
  count(SignalId::kCudaErrors, counts.errors);
  add(SignalId::kCountedShare, watch.share);
  add(SignalId::kTimedShare, watch.timed ? 1 : 0);
  looked_ns_ = now_ns;
  return samples;
}

}  // namespace rankscope::probes
