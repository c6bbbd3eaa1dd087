// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

// The number at the start of `text`, which it is taken off with what stands behind it.
Number Take(std::string_view& text, std::string_view behind) {
  text = LeftTrimmed(text);
  const Number number = ReadNumber(text);
  if (!number || !text.substr(number.text.size()).starts_with(behind)) return {};
  text.remove_prefix(number.text.size() + behind.size());
  return number;
}

}  // namespace

// " 96: 1.084791, 1.030988 avg loss, 0.001000 rate, 3.21 seconds, 6144 images, 9.1 hours left", by
// darknet's detector (examples/detector.c; without "loss" in the first version), and "96, 0.012:
// 1.08, 1.03 avg, ..." with the share of the epochs by its classifier. What is judged is the
// running mean.
bool ParseDarknet(const CleanLine& line, RecordList& out) {
  std::string_view text = LeftTrimmed(line.text);
  const Number step = DarknetBatch(text);
  if (!step) return false;
  text.remove_prefix(text.find(": ") + 2);
  Take(text, ", ");
  const Number mean = Take(text, " avg");
  if (text.starts_with(" loss")) text.remove_prefix(5);
  if (!mean || !text.starts_with(", ")) return false;
  text.remove_prefix(2);
  const Number rate = Take(text, " rate, ");
  const Number seconds = Take(text, " seconds, ");
  const Number images = Take(text, " images");
  if (!rate || !seconds || !images) return false;
  Progress progress;
  progress.format = "darknet";
  SetStep(progress, step);
  SetLoss(progress, mean);
  SetLearningRate(progress, rate);
  progress.step_seconds = seconds.value;
  progress.consumed_samples = images.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
