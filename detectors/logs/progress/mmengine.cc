// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/meters.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// `pairs` begin behind the mode: "[1][ 50/100] ..." by epoch, "[ 50/1000] ..." by iteration.
bool ReadIndexed(const PairList& pairs, bool by_iteration, std::string_view format,
                 RecordList& out) {
  const size_t index = by_iteration ? 0 : 1;
  if (pairs.size() <= index || !pairs[index].total || !IsIndex(pairs[index].value)) return false;
  Progress progress;
  progress.format = format;
  if (!TakeLoss(pairs, progress)) return false;
  FillFromPairs(pairs, progress);
  SetStep(progress, pairs[index].value);
  if (by_iteration) {
    progress.total_steps = pairs[0].total.value;
  } else {
    progress.epoch = pairs[0].value.value;
  }
  if (const Pair* time = pairs.Find(Key::kTime)) progress.step_seconds = time->value.value;
  // "base_lr: 1e-3 lr: 1e-04": the second is the one in use.
  if (const Pair* rate = pairs.FindNamed("lr")) SetLearningRate(progress, rate->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace

// "02/03 04:05:06 - mmengine - INFO - Epoch(train) [1][ 50/100]  lr: 1e-03  time: 0.25  loss: 0.75"
bool ParseMmengine(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find("(train)");
  if (at == std::string_view::npos || at < 4) return false;
  const bool by_iteration = line.text.substr(0, at).ends_with("Iter");
  if (!by_iteration && !line.text.substr(0, at).ends_with("Epoch")) return false;
  const PairList pairs(line.text.substr(at + 7));
  return ReadIndexed(pairs, by_iteration, "mmengine", out);
}

// mmcv before 2: "2026-02-03 04:05:06,338 - mmdet - INFO - Epoch [1][50/100]\tlr: 2.0e-03, eta:
// 1:00:00, time: 0.5, data_time: 0.1, memory: 3000, loss: 0.5", "Iter [50/160000]\tlr: ...".
bool ParseMmcv(const CleanLine& line, RecordList& out) {
  const bool by_iteration = line.text.find("Iter [") != std::string_view::npos;
  const size_t at = line.text.find(by_iteration ? "Iter [" : "Epoch [");
  const size_t rate = line.text.find("]\tlr: ");
  if (at == std::string_view::npos || rate == std::string_view::npos || rate < at) return false;
  const PairList pairs(line.text.substr(at + (by_iteration ? 5 : 6)));
  return ReadIndexed(pairs, by_iteration, "mmcv", out);
}

}  // namespace rankscope::logs
