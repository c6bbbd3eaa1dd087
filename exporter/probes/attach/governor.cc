// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/governor.h"

#include <algorithm>

namespace rankscope::probes {
namespace {

// More is counted again only below this part of the budget, so that a rate at the edge does not
// switch probes each second.
constexpr double kReturnAt = 0.8;
// Of the runtime's launches that must have been seen in the driver before the runtime's own probes
// are dispensable. The rest failed before they got there.
constexpr double kSeenBelow = 0.9;

// Of the budget that timed calls may take, so that some launches are counted as well.
constexpr double kForCalls = 0.9;

double CallCost(const ProbeCosts& costs, const ProbeRates& rates, const LaunchPlan& plan) {
  return (plan.calls ? rates.calls * costs.call : 0) +
         (plan.stepped_calls ? rates.stepped_calls * costs.stepped_call : 0);
}

double LaunchCost(const ProbeCosts& costs, const ProbeRates& rates, bool runtime) {
  return rates.driver * costs.driver + (runtime ? rates.runtime * costs.runtime : 0);
}

}  // namespace

double CostOf(const ProbeCosts& costs, const ProbeRates& rates, const LaunchPlan& plan) {
  return CallCost(costs, rates, plan) + plan.share * LaunchCost(costs, rates, plan.runtime);
}

LaunchPlan DecideLaunches(const ProbeCosts& costs, const ProbeRates& rates, double budget,
                          const LaunchPlan& current) {
  ProbeRates known = rates;
  // Without its probes the runtime's launches are not seen: at worst, each of the driver's is one.
  if (!current.runtime) known.runtime = known.below = rates.driver;
  LaunchPlan everything = {true, 1, current.calls, current.stepped_calls};
  if (CallCost(costs, rates, everything) > kForCalls * budget) {
    everything.stepped_calls &= rates.stepped_calls == 0;
    everything.calls &= CallCost(costs, rates, everything) <= kForCalls * budget;
  }
  const double left = std::max(budget - CallCost(costs, rates, everything), 0.0);
  const auto fits = [&](const LaunchPlan& plan) {
    const bool more = (plan.runtime && !current.runtime) || plan.share > current.share;
    return LaunchCost(costs, known, plan.runtime) <= left * (more ? kReturnAt : 1);
  };
  if (fits(everything)) return everything;
  LaunchPlan plan = everything;
  plan.runtime = known.below < kSeenBelow * known.runtime || known.driver == 0;
  if (fits(plan)) return plan;
  const double cost = LaunchCost(costs, known, plan.runtime);
  plan.share = std::clamp(left / cost, kLeastShare, 1.0);
  return plan;
}

}  // namespace rankscope::probes
