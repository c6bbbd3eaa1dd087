// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Keeps what probes of CUDA cost a rank within its budget. Launches that are seen in both layers
// are counted in one; what is still too much is counted in a window of each second only. Calls that
// are timed are few; where they are not, and would take the budget alone, they are given up, those
// that the kernel single-steps before the others. Where a rank launches little - the case that
// matters, for it may hang - everything is counted. Pure.
#pragma once

namespace rankscope::probes {

// Seconds of CPU that one run takes from the thread it interrupts.
struct ProbeCosts {
  double driver = 0;
  double runtime = 0;
  double launch_return = 0;
  double call = 0;          // entry and return of what is timed
  double stepped_call = 0;  // the same, where the kernel single-steps
};

// Runs a second of the busiest process, while its launch probes were on.
struct ProbeRates {
  double driver = 0;
  double runtime = 0;
  double below = 0;  // launches of the runtime that were seen in the driver too
  double calls = 0;
  double stepped_calls = 0;
};

struct LaunchPlan {
  bool runtime = true;  // else the driver's functions show all
  double share = 1;     // of each second
  bool calls = true;    // that are timed
  bool stepped_calls = true;
  bool times_all() const { return calls && stepped_calls; }
  bool operator==(const LaunchPlan&) const = default;
};

// Shorter windows show too little, and attaching costs, too.
inline constexpr double kLeastShare = 0.03;

// `budget`: share of one core. `current`: the plan under which the rates were measured. What is not
// timed under it is not timed under the next: nothing shows how often it would be.
LaunchPlan DecideLaunches(const ProbeCosts& costs, const ProbeRates& rates, double budget,
                          const LaunchPlan& current);

// What all probes cost the process under a plan, as a share of one core.
double CostOf(const ProbeCosts& costs, const ProbeRates& rates, const LaunchPlan& plan);

}  // namespace rankscope::probes
