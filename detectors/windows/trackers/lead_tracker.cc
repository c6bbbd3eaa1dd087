// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/lead_tracker.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "detectors/windows/series/sample_find.h"
#include "detectors/windows/series/statistics.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::windows {
namespace {

constexpr size_t kScaleRounds = 8;  // that the scale is learned from
constexpr double kLeastNoise = 0.01;
constexpr uint32_t kNoiseEvery = 16;  // rounds

template <class Get>
double MedianOver(const std::map<int32_t, RankLead>& ranks, Get get) {
  std::vector<double> values;
  values.reserve(ranks.size());
  for (const auto& [number, rank] : ranks) values.push_back(get(rank));
  return Median(values);
}

template <size_t kCapacity>
double MedianOfRing(const Ring<float, kCapacity>& ring) {
  std::vector<double> values;
  for (size_t i = 0; i < ring.size(); ++i) values.push_back(static_cast<double>(ring[i]));
  return Median(values);
}

std::vector<double> Newest(const Ring<float, RankLead::kRounds>& ring, size_t rounds) {
  std::vector<double> values;
  const size_t from = ring.size() - std::min(ring.size(), rounds);
  for (size_t i = from; i < ring.size(); ++i) values.push_back(static_cast<double>(ring[i]));
  return values;
}

// The median of `sorted` without the element at `left_out`.
double MedianWithout(const std::vector<double>& sorted, size_t left_out) {
  const size_t n = sorted.size() - 1;
  const auto at = [&](size_t i) { return sorted[i < left_out ? i : i + 1]; };
  return n % 2 == 1 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) / 2;
}

}  // namespace

double RankLead::Level(size_t rounds) const {
  if (leads.size() < rounds) return std::numeric_limits<double>::quiet_NaN();
  return Median(Newest(leads, rounds));
}

double RankLead::Identity(size_t rounds) const {
  rounds = std::min(rounds, longest.size());
  if (rounds == 0) return 0;
  double times = 0;
  for (size_t i = longest.size() - rounds; i < longest.size(); ++i) times += longest[i];
  return times / static_cast<double>(rounds);
}

void LeadSeries::Add(int32_t rank, const Look& look) {
  if (rank < 0 || !(look.seconds > 0) || !std::isfinite(look.busy)) return;
  if (ranks_.size() >= kMaxRanks && !ranks_.contains(rank)) return;
  RankLead& lead = ranks_[rank];
  lead.busy += look.busy * look.seconds;
  lead.work += look.work * look.seconds;
  lead.pace += look.pace * look.seconds;
  lead.seconds += look.seconds;
}

void LeadSeries::Drop() {
  for (auto& [number, rank] : ranks_) rank.busy = rank.work = rank.pace = rank.seconds = 0;
}

// All ranks were looked at, each computed, and they got on as they use to.
bool LeadSeries::IsTraining() {
  constexpr double kLeast = 0.3, kIdle = 0.05, kFollow = 0.02;
  for (const auto& [number, rank] : ranks_) {
    if (!(rank.seconds > 0) || !(rank.pace > 0)) return false;
  }
  const double pace =
      MedianOver(ranks_, [](const RankLead& rank) { return rank.pace / rank.seconds; });
  for (const auto& [number, rank] : ranks_) {
    if (rank.pace / rank.seconds < kIdle * pace) return false;  // others wait for it, or it is done
  }
  if (pace_ > 0 && pace < kLeast * pace_) return false;
  if (pace_ > 0) pace_ += kFollow * (pace - pace_);
  return true;
}

// Of the first rounds, and those of all ranks alike: what a busy rank does.
bool LeadSeries::KnowsScale() {
  if (std::isfinite(scale_)) return true;
  if (++seen_ <= kWarmUp) return false;
  early_scales_.Push(static_cast<float>(MedianOver(
      ranks_, [](const RankLead& rank) { return rank.busy > 0 ? rank.work / rank.busy : 0; })));
  early_paces_.Push(static_cast<float>(
      MedianOver(ranks_, [](const RankLead& rank) { return rank.pace / rank.seconds; })));
  if (early_scales_.size() < kScaleRounds) return false;
  scale_ = MedianOfRing(early_scales_);
  pace_ = MedianOfRing(early_paces_);
  return true;
}

void LeadSeries::Close(Timestamp t) {
  if (ranks_.size() < 2 || !IsTraining() || !KnowsScale()) return Drop();
  std::vector<double> sorted, waits;
  for (const auto& [number, rank] : ranks_) {
    const double work = scale_ > 0 ? rank.work / scale_ : 0;
    waits.push_back((rank.busy - work) / rank.seconds);
  }
  sorted = waits;
  std::sort(sorted.begin(), sorted.end());
  if (rounds_++ == 0) begin_ = t;
  seconds_ += ranks_.begin()->second.seconds;
  const double usual_noise = MedianOver(ranks_, [](const RankLead& rank) { return rank.noise; });
  size_t i = 0;
  for (auto& [number, rank] : ranks_) {
    const double wait = waits[i++];
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), wait);
    const double lead = MedianWithout(sorted, static_cast<size_t>(at - sorted.begin())) - wait;
    rank.longest.Push(wait <= sorted.front() && wait < sorted[1] ? 1 : 0);
    Judge(rank, lead, usual_noise, t);
  }
  Drop();
}

void LeadSeries::Judge(RankLead& rank, double lead, double usual_noise, Timestamp t) {
  rank.leads.Push(static_cast<float>(lead));
  if (rank.leads.size() < kBaseline) return;
  if (rank.noise <= 0) {
    rank.usual = rank.learned = rank.Level(kBaseline);
    rank.noise = std::max(kLeastNoise, NoiseSigma(Newest(rank.leads, kBaseline)));
    return;
  }
  // By differences of neighbours: a change of the level leaves them as they are. So few values may
  // show too little noise; what they show more than before counts at once.
  if (rounds_ % kNoiseEvery == 0) {
    constexpr double kFollow = 1.0 / 16, kAtOnce = 0.9;
    const double noise = std::max(kLeastNoise, NoiseSigma(Newest(rank.leads, RankLead::kRounds)));
    rank.noise = std::max(rank.noise + kFollow * (noise - rank.noise), kAtOnce * noise);
  }
  const double more = lead - rank.usual;
  constexpr size_t kRecent = 30;
  if (rank.late) {
    const size_t since = std::min<size_t>(++rank.late_rounds, kRecent);
    if (since < kRecent / 2 || rank.Level(since) - rank.usual >= kNotable / 2) return;
    rank.late = false;
    rank.cusum.Clear();
    return;
  }
  constexpr double kForget = 1000;  // rounds
  const double learned = std::min(kForget, static_cast<double>(rounds_));
  // Ranks of one job vary alike, and all of them show it better than one does, whose own values are
  // few. One that does vary more is held to its own noise, but for what that may be overestimated.
  constexpr double kOwn = 0.85;
  const double noise = std::max(kOwn * rank.noise, usual_noise);
  rank.cusum.Add(more / noise, learned);
  rank.usual += std::clamp(more, -Cusum::kClip * noise, Cusum::kClip * noise) / learned;
  if (rank.cusum.fell()) rank.cusum.Clear();
  if (!rank.cusum.rose()) return;
  const size_t since = std::clamp<size_t>(rank.cusum.high_values, 3, kRecent);
  rank.late = rank.Level(since) - rank.usual >= kNotable;
  if (!rank.late) {
    rank.cusum.high = Cusum::kLimit;  // asked again with the next round
    return;
  }
  rank.cusum.Clear();
  rank.late_rounds = static_cast<uint32_t>(since);
  const double spent = seconds_ / rounds_ * static_cast<double>(since);
  rank.late_since = t - Seconds(spent);
}

bool LeadTracker::Turn(LeadSeries& series, Timestamp& begin, Timestamp t,
                       Timestamp unheard_until) const {
  constexpr double kEarly = 0.2;  // looks come a little early or late
  if (paused_ || (begin.ns != 0 && begin < unheard_until)) {
    series.Drop();
    begin = paused_ ? Timestamp{} : t;
    return false;
  }
  if (begin.ns == 0) {
    begin = t;
    return false;  // it may tell of a time before
  }
  const double since = (t - begin).seconds() - kEarly;
  if (since > round_seconds_) {
    if (NobodyEntered(begin)) {
      series.Drop();
    } else {
      series.Close(begin + Seconds(round_seconds_));
    }
    begin = begin + Seconds(std::floor(since / round_seconds_) * round_seconds_);
  }
  return true;
}

void LeadTracker::NoteCollectives(const SampleBatch& batch, int32_t rank, Timestamp t) {
  const std::optional<double> entered = FindSample(batch, SignalId::kCollectivesEnqueued);
  if (!entered) return;
  if (enqueued_.size() >= LeadSeries::kMaxRanks && !enqueued_.contains(rank)) return;
  const auto known = enqueued_.find(rank);
  if (known == enqueued_.end() || *entered > known->second) entered_at_ = t;
  enqueued_[rank] = *entered;
  counted_at_ = t;
}

// A round is as long as a step where the job tells how long that is; else a step may be longer.
bool LeadTracker::NobodyEntered(Timestamp since) const {
  constexpr double kRounds = 3;
  return counted_at_.ns != 0 && counted_at_ > since &&
         entered_at_ + Seconds(kRounds * round_seconds_) < since;
}

void LeadTracker::OnStepSeconds(double seconds) {
  constexpr double kMost = 600;
  if (std::isfinite(seconds) && seconds > 0)
    round_seconds_ = std::clamp(std::ceil(seconds), 1.0, kMost);
}

void LeadTracker::OnGpu(const GpuWindow& gpu, Timestamp t, Timestamp unheard_until) {
  if (gpu.ranks.size() != 1 || gpu.count() < 2) return;
  const GpuSecond& look = gpu.newest(0);
  constexpr double kMostBetween = 5;
  const double seconds = (look.t - gpu.newest(1).t).seconds();
  if (!std::isfinite(look.engine) || !(seconds > 0) || seconds > kMostBetween) return;
  const bool tells = std::isfinite(look.sm);
  const bool draws = !tells && std::isfinite(look.power) && look.power > 0;
  if (draws && Turn(power_, power_round_, t, unheard_until)) {
    LeadSeries::Look of;
    of.busy = of.pace = static_cast<double>(look.engine);
    of.work = static_cast<double>(look.power);
    of.seconds = seconds;
    power_.Add(gpu.ranks.front(), of);
  }
  if (!Turn(gpus_, gpu_round_, t, unheard_until)) return;
  LeadSeries::Look of;
  of.busy = static_cast<double>(look.engine);
  of.work = tells ? static_cast<double>(look.sm) : 0;
  of.pace = tells ? of.work : of.busy;
  of.seconds = seconds;
  gpus_.Add(gpu.ranks.front(), of);
}

void LeadTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (speaker.rank < 0) return;
  NoteCollectives(batch, speaker.rank, t);
  const std::optional<double> sync = FindSample(batch, SignalId::kCudaSyncSeconds);
  if (!sync) return;
  if (totals_.size() >= LeadSeries::kMaxRanks && !totals_.contains(speaker.rank)) return;
  Totals& before = totals_[speaker.rank];
  Totals now;
  now.process = speaker.process;
  now.t = t;
  now.sync = *sync;
  now.launches = FindSample(batch, SignalId::kKernelLaunches).value_or(0) +
                 FindSample(batch, SignalId::kGraphLaunches).value_or(0);
  const bool known = before.t.ns != 0 && before.process == speaker.process &&
                     before.t >= speaker.unheard_until && now.sync >= before.sync &&
                     now.launches >= before.launches;
  const double seconds = (t - before.t).seconds();
  const double waited = now.sync - before.sync, launched = now.launches - before.launches;
  before = now;
  // Calls that are not all timed, or counted, tell of no share of the time.
  constexpr double kMostBetween = 5;
  const bool whole = FindSample(batch, SignalId::kTimedShare).value_or(1) >= 1 &&
                     FindSample(batch, SignalId::kCountedShare).value_or(1) > 0;
  if (!known || !whole || !(seconds > 0) || seconds > kMostBetween) return;
  if (!Turn(calls_, call_round_, t, speaker.unheard_until)) return;
  LeadSeries::Look of;
  of.busy = std::min(1.0, waited / seconds);  // threads may wait side by side
  of.pace = launched / seconds;
  of.seconds = seconds;
  calls_.Add(speaker.rank, of);
}

}  // namespace rankscope::windows
