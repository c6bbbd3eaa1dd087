// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/hang_watch.h"

namespace rankscope::probes {
namespace {

// Of wall time; timers and watchdogs run for less.
constexpr double kMovedShare = 0.02;
// Who runs all the time without a wait may be as stuck as who waits all the time.
constexpr double kBusyShare = 0.98;
// A shell that has only started others has not worked.
constexpr double kWorkedSeconds = 0.2;

}  // namespace

bool HangWatch::Due(const ProcessKey& process, const ProcessTimes& times, Timestamp now) {
  const auto [found, fresh] = watches_.try_emplace(process);
  Watch& watch = found->second;
  const double running = times.seconds[static_cast<size_t>(WaitClass::kRunning)];
  const double silent = times.silent_seconds;
  const double span = (now - watch.seen).seconds();
  if (fresh) {
    watch.moved = now;
  } else {
    const double ran = running - watch.running_seconds;
    const double alone = silent - watch.silent_seconds;
    const bool waits = ran < kMovedShare * span;
    if (!waits) watch.worked_seconds += ran;
    const bool spins = alone > kBusyShare * span;
    if (!waits && !spins) {
      watch.moved = now;
      watch.looks = 0;
    }
  }
  watch.running_seconds = running;
  watch.silent_seconds = silent;
  watch.seen = now;
  if (watch.worked_seconds < kWorkedSeconds || now - watch.moved < kStill) return false;
  if (watch.looks >= kMostLooks || (watch.looked.ns != 0 && now - watch.looked < kBetween))
    return false;
  ++watch.looks;
  watch.looked = now;
  return true;
}

void HangWatch::Forget(Timestamp before) {
  std::erase_if(watches_, [before](const auto& entry) { return entry.second.seen < before; });
}

}  // namespace rankscope::probes
