// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Keeps what launch probes cost a rank within its budget. What is seen in both layers is counted in
// one; what is still too much is counted in a window of each second only. Where a rank launches
// little - the case that matters, for it may hang - everything is counted. Pure.
#pragma once

namespace rankscope::probes {

// Seconds of CPU that one run takes from the thread it interrupts.
struct ProbeCosts {
  double driver = 0;
  double runtime = 0;
  double launch_return = 0;
  double call = 0;  // entry and return of what is timed
};

// Runs a second of the busiest process, while its launch probes were on.
struct ProbeRates {
  double driver = 0;
  double runtime = 0;
  double below = 0;  // launches of the runtime that were seen in the driver too
  double calls = 0;  // these are always on
};

struct LaunchPlan {
  bool runtime = true;  // else the driver's functions show all
  double share = 1;     // of each second
  bool operator==(const LaunchPlan&) const = default;
};

// Shorter windows show too little, and attaching costs, too.
inline constexpr double kLeastShare = 0.03;

// `budget`: share of one core. `current`: the plan under which the rates were measured.
LaunchPlan DecideLaunches(const ProbeCosts& costs, const ProbeRates& rates, double budget,
                          const LaunchPlan& current);

// What all probes cost the process under a plan, as a share of one core.
double CostOf(const ProbeCosts& costs, const ProbeRates& rates, const LaunchPlan& plan);

}  // namespace rankscope::probes
