// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How soon the rank is named that makes each step 5.6 % longer, where step times vary by 3 %, and
// how often a rank of a healthy job is. Eight ranks of one node compute, wait for the last of them,
// and reduce; each second, the GPUs report the shares in which their engine and their SMs were
// active.
//
//   straggler_bench [RUNS] [HEALTHY_STEPS]
//
// By turns on the same readings: the tracker (windows/trackers/lead_tracker.h), and two rules of
// medians: one rank's SMs against its peers over six pieces of 10 s, and the job's step time, of
// which the newest 30 against the first 100, which names nobody.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <vector>

#include "detectors/windows/series/statistics.h"
#include "detectors/windows/trackers/gpu_tracker.h"
#include "detectors/windows/trackers/lead_tracker.h"

namespace rankscope::bench {
namespace {

constexpr int kRanks = 8;
constexpr double kWork = 0.7,
                 kChannels = 0.15;  // SM activity while it computes, and while it waits
constexpr double kReduce = 0.15;    // of a step

struct Case {
  const char* name;
  double step_seconds;
  double common, own;  // noise of a step: of all ranks alike, and of each
};
constexpr Case kCases[] = {
    {"1 s, ranks vary together and by themselves", 1, 0.0325, 0.015},
    {"1 s, each by itself", 1, 0, 0.03},
    {"0.3 s, each by itself", 0.3, 0, 0.03},
    {"4 s, each by itself", 4, 0, 0.03},
};

// Pieces of 10 s in which one rank's SMs are busier than the median of its peers.
class PieceRule {
 public:
  // The rank that is named; -1: none.
  int Add(const std::array<double, kRanks>& sms) {
    for (size_t i = 0; i < kRanks; ++i) sums_[i] += sms[i];
    if (++seconds_ < 10) return named_;
    std::array<double, kRanks> piece{};
    for (size_t i = 0; i < kRanks; ++i) piece[i] = sums_[i] / seconds_;
    pieces_.push_back(piece);
    if (pieces_.size() > 6) pieces_.pop_front();
    sums_ = {};
    seconds_ = 0;
    named_ = pieces_.size() < 6 ? -1 : Named();
    return named_;
  }

 private:
  int Named() const {
    std::array<int, kRanks> most{};
    std::array<std::vector<double>, kRanks> of;
    for (const auto& piece : pieces_) {
      ++most[static_cast<size_t>(std::max_element(piece.begin(), piece.end()) - piece.begin())];
      for (size_t i = 0; i < kRanks; ++i) of[i].push_back(piece[i]);
    }
    const auto at = static_cast<size_t>(std::max_element(most.begin(), most.end()) - most.begin());
    std::vector<double> peers, spread;
    for (size_t i = 0; i < kRanks; ++i) {
      if (i != at) peers.push_back(windows::Median(of[i]));
    }
    const double usual = windows::Median(peers), own = windows::Median(of[at]);
    for (const double peer : peers) spread.push_back(std::abs(peer - usual));
    const double z = (own - usual) / std::max(0.01 * usual, 1.4826 * windows::Median(spread));
    return most[at] >= 4 && own >= 1.05 * usual && z >= 3 ? static_cast<int>(at) : -1;
  }

  std::array<double, kRanks> sums_{};
  int seconds_ = 0, named_ = -1;
  std::deque<std::array<double, kRanks>> pieces_;
};

// The newest 30 steps against the first 100.
class StepRule {
 public:
  bool Add(double seconds) {
    if (early_.size() < 100) {
      early_.push_back(seconds);
      usual_ = windows::Median(early_);
      return false;
    }
    newest_.push_back(seconds);
    if (newest_.size() > 30) newest_.erase(newest_.begin());
    return newest_.size() == 30 && windows::Median(newest_) > 1.05 * usual_;
  }

 private:
  std::vector<double> early_, newest_;
  double usual_ = 0;
};

// One job, second by second.
class Job {
 public:
  Job(const Case& of, uint64_t seed) : case_(of), random_(seed) {
    leads_.OnStepSeconds(of.step_seconds);
    for (int rank = 0; rank < kRanks; ++rank) {
      windows::GpuWindow& gpu = gpus_[static_cast<size_t>(rank)];
      gpu.ranks = {rank};
      pace_[static_cast<size_t>(rank)] = 1 + 0.02 * Normal();  // GPUs of one model differ
    }
  }

  // The next step; `slower` is added to that of rank 3, as a share of a step.
  void Step(double slower) {
    const double common = 1 + case_.common * Normal() + (Chance(0.005) ? In(0.3, 3) : 0);
    const int pausing = Chance(0.005) ? static_cast<int>(In(0, kRanks)) : -1;
    const double pause = In(0.3, 3);
    std::array<double, kRanks> computes{};
    double latest = 0;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      double compute = (1 - kReduce) * common * pace_[rank] + case_.own * Normal();
      if (static_cast<int>(rank) == pausing) compute += pause;
      if (rank == 3) compute += slower;
      computes[rank] = std::max(0.1, compute) * case_.step_seconds;
      latest = std::max(latest, computes[rank]);
    }
    const double end = latest + kReduce * case_.step_seconds;
    for (double spent = 0; spent < end;) {
      const double until = std::min(end, spent + 1 - phase_);
      for (size_t rank = 0; rank < kRanks; ++rank)
        working_[rank] += std::clamp(computes[rank] - spent, 0.0, until - spent);
      phase_ += until - spent;
      spent = until;
      if (phase_ >= 1 - 1e-9) Second();
    }
    ++steps_;
    if (step_times_.size() < 2000) step_times_.push_back(end);
    if (by_step_ < 0 && step_rule_.Add(end)) by_step_ = steps_;
  }

  const windows::LeadTracker& leads() const { return leads_; }
  // The first step after which somebody was named, and who: the tracker, the rule of pieces.
  int by_tracker() const { return by_tracker_; }
  int named_by_tracker() const { return named_by_tracker_; }
  int by_pieces() const { return by_pieces_; }
  int named_by_pieces() const { return named_by_pieces_; }
  int by_step() const { return by_step_; }
  const std::vector<double>& step_times() const { return step_times_; }
  int false_by_tracker() const { return times_; }

 private:
  double Normal() { return normal_(random_); }
  double In(double low, double high) {
    return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(random_);
  }
  bool Chance(double share) { return In(0, 1) < share; }

  void Second() {
    phase_ = 0;
    ++seconds_;
    std::array<double, kRanks> sms{};
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const double worked = working_[rank];
      working_[rank] = 0;
      sms[rank] = (worked * kWork + (1 - worked) * kChannels) * (1 + 0.005 * Normal());
      windows::GpuWindow& gpu = gpus_[rank];
      windows::GpuSecond look;
      look.t = {static_cast<int64_t>((seconds_ + 0.001 * static_cast<double>(rank)) * 1e9)};
      look.engine = 1;
      look.sm = static_cast<float>(sms[rank]);
      gpu.seconds[gpu.written++ % windows::GpuWindow::kSeconds] = look;
      leads_.OnGpu(gpu, look.t, {});
    }
    const int piece = piece_rule_.Add(sms);
    if (by_pieces_ < 0 && piece >= 0) {
      by_pieces_ = steps_ + 1;
      named_by_pieces_ = piece;
    }
    for (const auto& [rank, lead] : leads_.gpus().ranks()) {
      if (!lead.late) continue;
      if (by_tracker_ < 0) {
        by_tracker_ = steps_ + 1;
        named_by_tracker_ = rank;
      }
      if (lead.late_since != last_) ++times_;
      last_ = lead.late_since;
    }
  }

  const Case& case_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  windows::LeadTracker leads_;
  std::array<windows::GpuWindow, kRanks> gpus_;
  std::array<double, kRanks> pace_{}, working_{};
  PieceRule piece_rule_;
  StepRule step_rule_;
  std::vector<double> step_times_;
  double phase_ = 0, seconds_ = 0;
  int steps_ = 0, times_ = 0;
  Timestamp last_;
  int by_tracker_ = -1, named_by_tracker_ = -1, by_pieces_ = -1, named_by_pieces_ = -1;
  int by_step_ = -1;
};

struct Delays {
  std::vector<double> steps;
  int wrong = 0, early = 0;

  void Add(int at, int onset, bool right) {
    if (at < 0) return;
    if (at <= onset) {
      ++early;
    } else if (!right) {
      ++wrong;
    } else {
      steps.push_back(at - onset);
    }
  }
  // Of the step times of a healthy job.
  static double Variation(const std::vector<double>& steps) {
    double sum = 0, squares = 0;
    const double usual = windows::Median(steps);
    double count = 0;
    for (const double step : steps) {
      if (step > 1.2 * usual) continue;  // a pause
      sum += step;
      squares += step * step;
      ++count;
    }
    const double mean = sum / count;
    return std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean;
  }
  void Print(const char* name, int runs) {
    std::printf("| %s | %zu of %d | %.0f | %.0f | %d | %d |\n", name, steps.size(), runs,
                steps.empty() ? 0 : windows::Median(steps),
                steps.empty() ? 0 : windows::Quantile(steps, 0.95), wrong, early);
  }
};

void Measure(const Case& of, int runs, int healthy_steps) {
  constexpr double kSlower = 0.056;
  constexpr int kAfter = 400;
  Delays tracker, pieces, step;
  for (int run = 0; run < runs; ++run) {
    const auto seed = static_cast<uint64_t>(run) * 7919 + 11;
    Job job(of, seed);
    const int onset = static_cast<int>(150 / std::min(1.0, of.step_seconds)) + run % 100;
    for (int i = 0; i < onset; ++i) job.Step(0);
    for (int i = 0; i < kAfter; ++i) job.Step(kSlower);
    tracker.Add(job.by_tracker(), onset, job.named_by_tracker() == 3);
    pieces.Add(job.by_pieces(), onset, job.named_by_pieces() == 3);
    step.Add(job.by_step(), onset, true);
  }
  Job varied(of, 3);
  for (int i = 0; i < 2000; ++i) varied.Step(0);
  std::printf(
      "\n%s: step times vary by %.1f %%\n| +5.6 %%, rule | named | steps, median | 95 %% | another "
      "rank | before the onset |\n",
      of.name, 100 * Delays::Variation(varied.step_times()));
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: |\n");
  tracker.Print("tracker", runs);
  pieces.Print("SMs, six pieces of 10 s", runs);
  step.Print("step time, 30 against 100 (names no rank)", runs);
  int false_tracker = 0, false_pieces = 0, false_step = 0, jobs = 0;
  constexpr int kOfJob = 5000;
  for (int done = 0; done < healthy_steps; done += kOfJob, ++jobs) {
    Job job(of, static_cast<uint64_t>(jobs) * 104729 + 5);
    for (int i = 0; i < kOfJob; ++i) job.Step(0);
    false_tracker += job.false_by_tracker();
    false_pieces += job.by_pieces() >= 0 ? 1 : 0;
    false_step += job.by_step() >= 0 ? 1 : 0;
  }
  std::printf(
      "healthy, %d steps in %d jobs: tracker %d alarms; pieces in %d jobs; step time in %d jobs\n",
      jobs * kOfJob, jobs, false_tracker, false_pieces, false_step);
}

}  // namespace
}  // namespace rankscope::bench

int main(int argc, char** argv) {
  const int runs = argc > 1 ? std::atoi(argv[1]) : 400;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 200000;
  for (const rankscope::bench::Case& of : rankscope::bench::kCases)
    rankscope::bench::Measure(of, runs, steps);
  return 0;
}
