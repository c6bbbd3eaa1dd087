// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/derived_signals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "detectors/windows/rank_activity.h"

namespace rankscope::windows {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double WallSeconds(Timestamp t, int64_t wall_offset_ns) {
  return wall_offset_ns == 0 ? kNone : static_cast<double>(t.ns + wall_offset_ns) * 1e-9;
}

double ValueOf(const CitedPoint& point) {
  return point.present() ? point.value : kNone;
}

double Newest(const std::vector<double>& values) {
  return values.empty() ? kNone : values.back();
}

// Of the exact tail by least squares: cheap, and a gauge, not a judgement.
double LossSlope(const AttemptWindow& window) {
  const std::vector<double> tail = window.loss.Tail();
  if (tail.size() < 3) return kNone;
  const auto n = static_cast<double>(tail.size());
  double sum_y = 0, sum_xy = 0;
  for (size_t i = 0; i < tail.size(); ++i) {
    sum_y += tail[i];
    sum_xy += static_cast<double>(i) * tail[i];
  }
  const double mean_x = (n - 1) / 2;
  const double per_record = (sum_xy - mean_x * sum_y) / (n * (n * n - 1) / 12);
  const double steps = window.clock.last_step() - window.clock.first_step();
  const bool stepped = std::isfinite(steps) && steps > 0 && window.progress > 1;
  return stepped ? per_record * static_cast<double>(window.progress - 1) / steps : per_record;
}

struct JobGetter {
  SignalId id;
  double (*get)(const AttemptWindow& now, const SignalView& view);
};
using W = AttemptWindow;
using V = SignalView;

constexpr std::array kJobGetters = {
    JobGetter{SignalId::kLoss, [](const W& w, const V&) { return ValueOf(w.loss.last()); }},
    JobGetter{SignalId::kGradNorm, [](const W& w, const V&) { return Newest(w.loss.GradNorms()); }},
    JobGetter{SignalId::kLearningRate,
              [](const W& w, const V&) { return Newest(w.loss.LearningRates()); }},
    JobGetter{SignalId::kStep, [](const W& w, const V&) { return w.clock.last_step(); }},
    JobGetter{SignalId::kStepSeconds,
              [](const W& w, const V&) { return w.clock.MedianStepSeconds(); }},
    JobGetter{SignalId::kLossFirst, [](const W& w, const V&) { return ValueOf(w.loss.first()); }},
    JobGetter{SignalId::kLossMin, [](const W& w, const V&) { return ValueOf(w.loss.lowest()); }},
    JobGetter{SignalId::kLossSlope, [](const W& w, const V&) { return LossSlope(w); }},
    JobGetter{SignalId::kMaxSteps, [](const W& w, const V&) { return w.clock.total_steps(); }},
    JobGetter{SignalId::kEpoch, [](const W& w, const V&) { return w.clock.epoch(); }},
    JobGetter{SignalId::kLastStepTimestamp,
              [](const W& w, const V& v) {
                return w.progress > 0 ? WallSeconds(w.clock.last_progress(), v.wall_offset_ns)
                                      : kNone;
              }},
};

struct RankGetter {
  SignalId id;
  double (*get)(const RankWindow& rank, const SignalView& view);
};
using R = RankWindow;

double LastLaunch(const RankWindow& rank, const SignalView& view) {
  const auto& launches = view.job.now().kernel.launches.ranks();
  const auto found = launches.find(rank.rank);
  if (found == launches.end() || !found->second.launched()) return kNone;
  return WallSeconds(found->second.last_launch(), view.wall_offset_ns);
}

template <Timestamp (RankCollective::*when)() const>
double LastCollective(const RankWindow& rank, const SignalView& view) {
  const auto& collectives = view.job.now().kernel.collectives.ranks();
  const auto found = collectives.find(rank.rank);
  if (found == collectives.end() || !found->second.counted()) return kNone;
  const Timestamp t = (found->second.*when)();
  return t.ns == 0 ? kNone : WallSeconds(t, view.wall_offset_ns);
}

constexpr std::array kRankGetters = {
    RankGetter{SignalId::kRankEngineActivity,
               [](const R& r, const V& v) { return ActivityOf(v.claimed, r.rank, v.now).engine; }},
    RankGetter{SignalId::kRankSmActivity,
               [](const R& r, const V& v) { return ActivityOf(v.claimed, r.rank, v.now).sm; }},
    RankGetter{SignalId::kLastLaunchTimestamp, LastLaunch},
    RankGetter{SignalId::kLastAdvanceTimestamp, LastCollective<&RankCollective::last_advance>},
    RankGetter{SignalId::kLastEnqueueTimestamp, LastCollective<&RankCollective::last_entered>},
};

// Each derived signal of the scope has one getter, and what comes from a record's text has its row
// in printed_numbers.h.
template <typename Getters>
constexpr bool EachHasOne(SignalScope scope, const Getters& getters) {
  for (const SignalRow& row : kSignals) {
    if (row.scope != scope) continue;
    size_t found = scope == SignalScope::Job && IsPrinted(row.id) ? 1 : 0;
    for (const auto& getter : getters) found += getter.id == row.id ? 1 : 0;
    if (found != (row.origin == SignalOrigin::Derived ? 1 : 0)) return false;
  }
  return true;
}
static_assert(EachHasOne(SignalScope::Job, kJobGetters));
static_assert(EachHasOne(SignalScope::Rank, kRankGetters));

// Below 0: its calls are not all seen, so there are no numbers.
constexpr bool IsOfCuda(SignalId id) {
  return id == SignalId::kKernelLaunches ||
         (id >= SignalId::kGraphLaunches && id <= SignalId::kCudaUse) ||
         (id >= SignalId::kLaunchGapSeconds && id <= SignalId::kLaunchGapsLonger);
}
constexpr bool IsOfNccl(SignalId id) {
  return id == SignalId::kCollectivesEnqueued ||
         (id >= SignalId::kCollectiveBytes && id <= SignalId::kInitsInFlight);
}

}  // namespace

JobSignals SignalsOf(const SignalView& view) {
  JobSignals signals = view.job.sampled();
  view.job.process_totals().Each(view.now,
                                 [&signals](SignalId id, double value) { signals.Set(id, value); });
  const AttemptWindow& now = view.job.now();
  now.printed.Each([&signals](SignalId id, double value) { signals.Set(id, value); });
  for (const JobGetter& getter : kJobGetters) signals.Set(getter.id, getter.get(now, view));
  return signals;
}

RankSignals SignalsOf(const SignalView& view, const RankWindow& rank) {
  RankSignals signals;
  const bool cuda = !(rank.rings.Last(SignalId::kCudaUse) < 0);
  const bool nccl = !(rank.rings.Last(SignalId::kCommunicators) < 0);
  rank.rings.EachNewest([&](SignalId id, double value) {
    if ((!cuda && IsOfCuda(id)) || (!nccl && IsOfNccl(id))) return;
    signals.Set(id, value);
  });
  for (const RankGetter& getter : kRankGetters) signals.Set(getter.id, getter.get(rank, view));
  return signals;
}

RankSignals SignalsWithoutRank(const SignalView& view) {
  RankSignals signals;
  const RankActivity activity = ActivityOf(view.claimed, -1, view.now);
  signals.Set(SignalId::kRankEngineActivity, activity.engine);
  signals.Set(SignalId::kRankSmActivity, activity.sm);
  return signals;
}

}  // namespace rankscope::windows
