// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// The number behind `name` in `text`, with or without thousands separators.
Number Named(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  return at == std::string_view::npos ? Number{} : ReadMetric(text.substr(at + name.size()));
}

}  // namespace

// "[2026-02-03 04:05:06] Ep. 1 : Up. 500 : Sen. 256,000 : Cost 8.71 * 5,112,001 @ 4,096 after
// 20,000,000 : Time 61.21s : 81233.11 words/s : gNorm 0.7112" (marian-nmt, training/scheduler.h).
bool ParseMarian(const CleanLine& line, RecordList& out) {
  const Number step = Named(line.text, " : Up. ");
  const Number cost = Named(line.text, " : Cost ");
  if (!step || !cost) return false;
  Progress progress;
  progress.format = "marian";
  SetStep(progress, step);
  SetLoss(progress, cost);
  if (const Number norm = Named(line.text, " : gNorm ")) SetGradNorm(progress, norm);
  if (const Number rate = Named(line.text, " : L.r. ")) SetLearningRate(progress, rate);
  if (const Number epoch = Named(line.text, "Ep. ")) progress.epoch = epoch.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
