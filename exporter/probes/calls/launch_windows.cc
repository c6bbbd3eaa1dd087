// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/launch_windows.h"

#include <algorithm>
#include <utility>

namespace rankscope::probes {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// Shorter measurements say little of a rate.
constexpr int64_t kLeastMeasureNs = 20'000'000;
// One look of a quarter of a second in ten seconds: 2.5 % of the launches are timed.
constexpr int64_t kReturnsEveryNs = 10 * kSecondNs;
constexpr Duration kReturnsFor = Milliseconds(250);
constexpr double kReturnsShare = 0.025;
// Calls that cost too much are looked at again for a second after so long: 3 % of their cost.
constexpr int64_t kTryCallsNs = 30 * kSecondNs;

double Rate(uint64_t before, uint64_t after, double seconds) {
  return after <= before ? 0 : static_cast<double>(after - before) / seconds;
}

}  // namespace

ProbeRuns RunsOf(const rs_cuda_counts& counts) {
  return {counts.runs[0],        counts.runs[1],  counts.below,
          counts.timed_launches, counts.calls[0], counts.calls[1]};
}

ProbeRates BusiestRates(const ProbeCosts& costs, const CallerRuns& before, const CallerRuns& after,
                        double seconds) {
  ProbeRates busiest;
  for (const auto& [pid, now] : after) {
    const auto found = before.find(pid);
    const ProbeRuns then = found != before.end() ? found->second : ProbeRuns{};
    const ProbeRates rates = {
        Rate(then.driver, now.driver, seconds), Rate(then.runtime, now.runtime, seconds),
        Rate(then.below, now.below, seconds), Rate(then.calls, now.calls, seconds),
        Rate(then.stepped_calls, now.stepped_calls, seconds)};
    if (CostOf(costs, rates, {}) > CostOf(costs, busiest, {})) busiest = rates;
  }
  return busiest;
}

ProbeCosts CostsOf(const SiteCosts& sites, const std::set<PlacedProbe>& placed) {
  ProbeCosts costs;
  for (const PlacedProbe& probe : placed) {
    const SiteCost& site = sites[static_cast<size_t>(probe.site)];
    const bool launch = probe.launch();
    double& entry = launch            ? (probe.layer != 0 ? costs.runtime : costs.driver)
                    : probe.stepped() ? costs.stepped_call
                                      : costs.call;
    // A timed call has both probes, a launch its return only in windows.
    entry = std::max(entry, launch ? site.entry_seconds : site.entry_seconds + site.return_seconds);
    if (launch) costs.launch_return = std::max(costs.launch_return, site.return_seconds);
  }
  return costs;
}

LaunchWindows::LaunchWindows(exporter::EventLoop& loop, CallAttacher& attacher, double budget,
                             std::function<CallerRuns()> read)
    : loop_(loop), attacher_(attacher), budget_(budget), read_(std::move(read)) {}

LaunchWindows::~LaunchWindows() {
  loop_.Cancel(timer_);
}

ProbeCosts LaunchWindows::costs() const {
  const CallAttacher::State& state = attacher_.state();
  return state.costs ? CostsOf(*state.costs, state.placed) : ProbeCosts{};
}

double LaunchWindows::returns_share() const {
  return plan_.share < 1 || timed_ns_ == 0 ? 0 : kReturnsShare;
}

void LaunchWindows::Begin(int64_t now_ns) {
  before_ = read_();
  before_ns_ = now_ns;
}

// What has run since Begin, and what follows for the plan.
void LaunchWindows::Decide(int64_t now_ns) {
  const int64_t took_ns = now_ns - before_ns_;
  if (before_ns_ == 0 || took_ns < kLeastMeasureNs || !attacher_.state().costs) return;
  const ProbeRates rates =
      BusiestRates(costs(), before_, read_(), static_cast<double>(took_ns) / kSecondNs);
  driver_rate_ = rates.driver + rates.runtime;
  plan_ = DecideLaunches(costs(), rates, budget_, plan_);
  if (plan_.times_all()) {
    untimed_ns_ = 0;
  } else if (untimed_ns_ == 0) {
    untimed_ns_ = now_ns;
  } else if (now_ns - untimed_ns_ >= kTryCallsNs) {
    plan_.calls = plan_.stepped_calls = true;  // the next measurement says whether they may stay
    untimed_ns_ = 0;
  }
  if (!plan_.times_all()) watch_.timed = false;
}

void LaunchWindows::Want(bool launches, bool returns) {
  attacher_.Want({launches, launches && plan_.runtime, returns, plan_.calls, plan_.stepped_calls});
}

void LaunchWindows::OnSecond(int64_t now_ns) {
  // Windows have their own pace, and begin when the probes are on.
  if (timer_ != 0 || !open_ || watch_.until_ns != 0) return;
  Decide(now_ns);
  Begin(now_ns);
  if (plan_.share < 1) {
    Close();
    return;
  }
  Want(true, false);
  TimeReturns(now_ns);
}

void LaunchWindows::TimeReturns(int64_t now_ns) {
  if (driver_rate_ == 0 || (timed_ns_ != 0 && now_ns - timed_ns_ < kReturnsEveryNs)) return;
  timed_ns_ = now_ns;
  Want(true, true);
  timer_ = loop_.After(kReturnsFor, [this] {
    timer_ = 0;
    Want(true, false);
  });
}

void LaunchWindows::Open() {
  timer_ = 0;
  open_ = true;
  before_ns_ = 0;
  Want(true, false);
}

// The window begins when the probes are on.
void LaunchWindows::OnAttached(int64_t now_ns) {
  const LaunchProbes& attached = attacher_.state().launches;
  const bool on = attached.driver;
  if (!watch_.timed && plan_.times_all() && attached.calls && attached.stepped_calls) {
    watch_.timed = true;
    watch_.timed_since_ns = now_ns;
  }
  if (!on || !open_ || plan_.share >= 1 || timer_ != 0 || watch_.until_ns == 0) return;
  watch_.since_ns = now_ns;
  watch_.until_ns = 0;
  Begin(now_ns);
  const auto window = static_cast<int64_t>(plan_.share * kSecondNs);
  timer_ = loop_.After({std::max(window, kLeastMeasureNs)}, [this] {
    timer_ = 0;
    const int64_t end_ns = loop_.Now().ns;
    Decide(end_ns);
    if (plan_.share < 1) {
      Close();
      return;
    }
    // Everything is counted again, from here on.
    watch_.share = 1;
    Want(true, false);
    Begin(end_ns);
  });
}

void LaunchWindows::Close() {
  const int64_t now_ns = loop_.Now().ns;
  open_ = false;
  watch_.share = plan_.share;
  watch_.until_ns = now_ns;
  Want(false, false);
  const auto rest = static_cast<int64_t>((1 - plan_.share) * kSecondNs);
  timer_ = loop_.After({std::max<int64_t>(rest, 1'000'000)}, [this] { Open(); });
}

}  // namespace rankscope::probes
