// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Libraries of boosted trees. A round passes over all the data, so a handful of them is a plan like
// any other; what is measured on the training data is the loss, where it is one that falls.
#include <algorithm>
#include <iterator>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// Metrics that are the better the smaller they are, as XGBoost and LightGBM spell them.
constexpr std::string_view kFalling[] = {"rmse",
                                         "rmsle",
                                         "mae",
                                         "mape",
                                         "mphe",
                                         "logloss",
                                         "error",
                                         "merror",
                                         "mlogloss",
                                         "poisson-nloglik",
                                         "gamma-nloglik",
                                         "cox-nloglik",
                                         "l1",
                                         "l2",
                                         "huber",
                                         "fair",
                                         "poisson",
                                         "quantile",
                                         "binary_logloss",
                                         "binary_error",
                                         "multi_logloss",
                                         "multi_error",
                                         "cross_entropy",
                                         "tweedie",
                                         "gamma",
                                         "gamma-deviance"};

bool Falls(std::string_view metric) {
  return std::find(std::begin(kFalling), std::end(kFalling), metric) != std::end(kFalling);
}

// XGBoost's others. A loop of one's own may print "[12] train-loss:0.5" and count steps.
bool IsXgboosts(std::string_view metric) {
  constexpr std::string_view kRising[] = {"auc", "ndcg", "map", "pre", "ams", "error@"};
  return Falls(metric) ||
         std::any_of(std::begin(kRising), std::end(kRising),
                     [metric](std::string_view begin) { return metric.starts_with(begin); });
}

// One "name:value" of the line. XGBoost joins the data's name and the metric's with '-' (and a
// number where there are several), LightGBM with "'s ".
struct Cell {
  std::string_view data, metric;
  Number value;
};

bool TakeCell(std::string_view& text, Cell& cell) {
  text = LeftTrimmed(text);
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon > 80) return false;
  const std::string_view name = text.substr(0, colon);
  std::string_view rest = LeftTrimmed(text.substr(colon + 1));
  cell.value = ReadNumber(rest);
  if (!cell.value) return false;
  if (const size_t of = name.find("'s "); of != std::string_view::npos) {
    cell.data = name.substr(0, of);
    cell.metric = name.substr(of + 3);
  } else {
    const size_t dash = name.find('-');
    if (dash == std::string_view::npos || name.find(' ') != std::string_view::npos) return false;
    cell.data = name.substr(0, dash);
    cell.metric = name.substr(dash + 1);
    if (!IsXgboosts(cell.metric)) return false;
  }
  rest.remove_prefix(cell.value.text.size());
  // Cross validation: "train-rmse:0.5+0.01", "cv_agg's l2: 0.5 + 0.01".
  const std::string_view spread = LeftTrimmed(rest);
  if (spread.starts_with('+')) {
    const std::string_view by = LeftTrimmed(spread.substr(1));
    if (const Number width = ReadNumber(by)) rest = by.substr(width.text.size());
  }
  text = rest;
  return true;
}

}  // namespace

// "[12]\ttrain-rmse:0.5\teval-rmse:0.625" (XGBoost), "[12]\ttraining's l2: 0.5\tvalid_1's l2: 0.6"
// (LightGBM); before it XGBoost may print the time, "[04:05:06] ".
bool ParseBoosting(const CleanLine& line, RecordList& out) {
  std::string_view text = line.text;
  for (int i = 0; i < 2 && text.starts_with('['); ++i) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    const Number round = WholeNumber(text.substr(1, close - 1));
    text = text.substr(close + 1);
    if (!IsIndex(round)) {
      text = LeftTrimmed(text);
      continue;
    }
    Progress progress;
    progress.format = "boosting";
    progress.step_unit = StepUnit::kRounds;
    SetStep(progress, round);
    Number tested;
    size_t cells = 0;
    for (Cell cell; TakeCell(text, cell); ++cells) {
      const bool training = cell.data.starts_with("train");
      if (training && progress.loss_text.empty() && Falls(cell.metric))
        SetLoss(progress, cell.value);
      if (!training && !tested && Falls(cell.metric)) tested = cell.value;
    }
    if (cells == 0 || !Trimmed(text).empty()) return false;
    out.emplace_back(progress);
    if (tested) out.push_back(MakeMarker(MarkerKind::kEval, "boosting", line, {}, tested.value));
    return true;
  }
  return false;
}

// "12:\tlearn: 0.5\ttest: 0.625\tbest: 0.625 (12)\ttotal: 600ms\tremaining: 4.4s": CatBoost. Which
// metric that is it does not say: one that rises would look like a loss that diverges.
bool ParseCatboost(const CleanLine& line, RecordList& out) {
  std::string_view text = LeftTrimmed(line.text);
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const Number round = WholeNumber(text.substr(0, colon));
  text = LeftTrimmed(text.substr(colon + 1));
  constexpr std::string_view kLearn = "learn: ";
  if (!IsIndex(round) || !text.starts_with(kLearn)) return false;
  text.remove_prefix(kLearn.size());
  const Number learn = ReadNumber(text);
  if (!learn || text.find("total: ") == std::string_view::npos) return false;
  Progress progress;
  progress.format = "catboost";
  progress.step_unit = StepUnit::kRounds;
  SetStep(progress, round);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
