// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scoreboard_board.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

namespace rankscope::bench {
namespace {

using generator::Truth;

constexpr double kSure = 0.6;

double Ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double Quantile(std::vector<double> of, double share) {
  if (of.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(of.begin(), of.end());
  return of[std::min(of.size() - 1, static_cast<size_t>(share * static_cast<double>(of.size())))];
}

bool SameRanks(const Truth& truth, const Judgement& judgement) {
  return std::set<int>(truth.ranks.begin(), truth.ranks.end()) ==
         std::set<int>(judgement.ranks.begin(), judgement.ranks.end());
}

}  // namespace

bool IsFault(const std::string& code) {
  return !code.empty() && code != "G1" && code != "U0";
}

bool IsRight(const Truth& truth, const std::string& code) {
  return code == truth.family ||
         std::find(truth.accepted.begin(), truth.accepted.end(), code) != truth.accepted.end();
}

double Judgement::NamedAt(const Truth& truth) const {
  double at = -1;
  for (const Change& change : changes) {
    const bool right = IsRight(truth, change.code);
    if (change.t <= truth.onset) at = right ? truth.onset : -1;
    if (change.t > truth.onset && right && at < 0) at = change.t;
  }
  return at;
}

double Board::Row::precision() const {
  return Ratio(right, right + named_wrongly);
}
double Board::Row::recall() const {
  return Ratio(right, decidable);
}
double Board::Row::f1() const {
  return Ratio(2 * precision() * recall(), precision() + recall());
}

void Board::AddHealthy(const Truth& truth, const Judgement& judgement) {
  ++healthy_;
  healthy_called_ += judgement.code == "G1";
  healthy_changes_ += judgement.Changed();
  healthy_seconds_ += truth.seconds;
  healthy_node_seconds_ += truth.seconds * truth.nodes;
  healthy_blamed_ += IsFault(judgement.code) ||
                     std::any_of(judgement.changes.begin(), judgement.changes.end(),
                                 [](const auto& change) { return IsFault(change.code); });
}

void Board::Add(const Truth& truth, const Judgement& judgement) {
  const bool right = IsRight(truth, judgement.code);
  const double off = judgement.confidence - (right ? 1 : 0);
  ++jobs_;
  brier_ += off * off;
  seconds_ += truth.seconds;
  changes_ += judgement.Changed();
  const auto bin = static_cast<size_t>(std::clamp(judgement.confidence * 10, 0.0, 9.0));
  ++bin_jobs_[bin];
  bin_right_[bin] += right;
  bin_confidence_[bin] += judgement.confidence;
  sure_wrong_ += !right && judgement.confidence >= kSure;
  if (truth.healthy) AddHealthy(truth, judgement);
  Row& row = rows_[truth.family];
  ++row.jobs;
  if (!truth.decidable) return;
  ++row.decidable;
  if (!right) ++rows_[judgement.code].named_wrongly;
  row.abstained += judgement.code == "U0" || judgement.code.empty();
  if (!right) return;
  ++row.right;
  row.sure_right += judgement.confidence >= kSure;
  if (!truth.sub.empty() && judgement.code == truth.family) {
    ++row.subs;
    row.subs_right += judgement.sub == truth.sub ||
                      std::find(truth.accepted_subs.begin(), truth.accepted_subs.end(),
                                judgement.sub) != truth.accepted_subs.end();
  }
  if (!truth.ranks.empty() && truth.culprit_seen && IsFault(judgement.code)) {
    ++row.culprits;
    row.culprits_right += SameRanks(truth, judgement);
  }
  if (const double at = judgement.NamedAt(truth); at >= 0 && !truth.healthy)
    row.delays.push_back(at - truth.onset);
}

Board::Row Board::Sum() const {
  Row sum;
  for (const auto& [family, row] : rows_) {
    sum.jobs += row.jobs;
    sum.decidable += row.decidable;
    sum.right += row.right;
    sum.sure_right += row.sure_right;
    sum.culprits += row.culprits;
    sum.culprits_right += row.culprits_right;
    sum.abstained += row.abstained;
    sum.delays.insert(sum.delays.end(), row.delays.begin(), row.delays.end());
  }
  return sum;
}

double Board::healthy_node_days() const {
  return healthy_node_seconds_ / 86400;
}

double Board::Value(const std::string& name) const {
  const Row sum = Sum();
  if (name == "accepted") return sum.recall();
  if (name == "sure") return Ratio(sum.sure_right, sum.decidable);
  if (name == "wrong") return Ratio(sure_wrong_, jobs_);
  if (name == "brier") return Ratio(brier_, jobs_);
  if (name == "culprit") return Ratio(sum.culprits_right, sum.culprits);
  if (name == "abstained") return Ratio(sum.abstained, sum.decidable);
  if (name == "healthy") return Ratio(healthy_called_, healthy_);
  if (name == "blamed") return Ratio(healthy_blamed_, healthy_);
  if (name == "changes") return Ratio(healthy_changes_, healthy_seconds_ / 3600);
  if (name == "macro_f1") {
    double f1 = 0;
    int families = 0;
    for (const auto& [family, row] : rows_)
      if (row.decidable > 0) f1 += row.f1(), ++families;
    return Ratio(f1, families);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void Board::PrintFamilies() const {
  std::printf(
      "| family | jobs | decidable | precision | recall | F1 | >= 0.6 | culprit | sub | abstained "
      "| "
      "delay, s: median, 90 %% |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto& [family, row] : rows_) {
    std::printf("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %d/%d | %d/%d | %d |",
                family.empty() ? "none" : family.c_str(), row.jobs, row.decidable, row.precision(),
                row.recall(), row.f1(), Ratio(row.sure_right, row.decidable), row.culprits_right,
                row.culprits, row.subs_right, row.subs, row.abstained);
    if (row.delays.empty()) {
      std::printf(" |\n");
    } else {
      std::printf(" %.0f, %.0f |\n", Quantile(row.delays, 0.5), Quantile(row.delays, 0.9));
    }
  }
}

void Board::PrintSums() const {
  const Row sum = Sum();
  std::printf("\nmacro-F1 %.3f; accepted %.3f of %d decidable jobs; right at >= 0.6: %.3f\n",
              Value("macro_f1"), sum.recall(), sum.decidable, Value("sure"));
  std::printf("wrong at >= 0.6: %.3f of %d jobs; abstained %.3f; Brier %.3f\n", Value("wrong"),
              jobs_, Value("abstained"), Value("brier"));
  std::printf(
      "culprit exact: %d of %d; from the onset to the verdict %.0f s (median), %.0f s (90 %%)\n",
      sum.culprits_right, sum.culprits, Quantile(sum.delays, 0.5), Quantile(sum.delays, 0.9));
  std::printf(
      "healthy: %d runs, %.2f node-days; a fault named in %d, called healthy %d; %.2f changes of "
      "verdict an hour (all jobs: %.2f)\n",
      healthy_, healthy_node_days(), healthy_blamed_, healthy_called_, Value("changes"),
      Ratio(changes_, seconds_ / 3600));
  std::printf("\n| confidence | jobs | mean | right |\n| --- | ---: | ---: | ---: |\n");
  for (size_t i = 0; i < bin_jobs_.size(); ++i) {
    if (bin_jobs_[i] == 0) continue;
    std::printf("| %.1f to %.1f | %d | %.2f | %.2f |\n", 0.1 * static_cast<double>(i),
                0.1 * static_cast<double>(i + 1), bin_jobs_[i], bin_confidence_[i] / bin_jobs_[i],
                Ratio(bin_right_[i], bin_jobs_[i]));
  }
}

void Board::PrintHead() {
  std::printf(
      "| | jobs | decidable | accepted | macro-F1 | right at >= 0.6 | wrong at >= 0.6 | culprit | "
      "abstained | Brier |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: "
      "|\n");
}

void Board::PrintRow(const std::string& name) const {
  const Row sum = Sum();
  std::printf("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %d/%d | %.2f | %.2f |\n", name.c_str(),
              jobs_, sum.decidable, sum.recall(), Value("macro_f1"), Value("sure"), Value("wrong"),
              sum.culprits_right, sum.culprits, Value("abstained"), Value("brier"));
  std::fflush(stdout);
}

}  // namespace rankscope::bench
