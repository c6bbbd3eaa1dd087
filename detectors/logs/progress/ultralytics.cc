// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

// The next cell of a line whose cells are padded with blanks.
std::string_view NextCell(std::string_view& text) {
  text = LeftTrimmed(text);
  size_t end = 0;
  while (end < text.size() && !IsBlank(text[end])) ++end;
  const std::string_view cell = text.substr(0, end);
  text.remove_prefix(end);
  return cell;
}

// "3/100": index and length. Both empty where the cell is another.
struct Fraction {
  Number index;
  Number length;
};
Fraction ReadFraction(std::string_view cell) {
  const size_t slash = cell.find('/');
  if (slash == std::string_view::npos) return {};
  const Fraction found = {WholeNumber(cell.substr(0, slash)), WholeNumber(cell.substr(slash + 1))};
  return IsIndex(found.index) && IsIndex(found.length) ? found : Fraction();
}

// "2.61G", the GPU memory in use; "0G" on a CPU.
bool IsMemory(std::string_view cell) {
  return cell.ends_with('G') && WholeNumber(cell.substr(0, cell.size() - 1));
}

// The batch, which the bar shows as "8/8".
Fraction FindBatch(std::string_view bar) {
  while (true) {
    const std::string_view cell = NextCell(bar);
    if (cell.empty()) return {};
    if (const Fraction batch = ReadFraction(cell); batch.index) return batch;
  }
}

// "100 epochs completed in 0.027 hours."
bool IsEnd(std::string_view text) {
  const Number epochs = WholeNumber(NextCell(text));
  constexpr std::string_view kDone = " epochs completed in ";
  if (!IsIndex(epochs) || !text.starts_with(kDone)) return false;
  text.remove_prefix(kDone.size());
  return WholeNumber(NextCell(text)) && Trimmed(text) == "hours.";
}

}  // namespace

// "  1/100  2.61G  1.153  1.398  1.192  81  640: 100%|####| 8/8 [00:03<00:00, 2.41it/s]": epoch,
// memory, one running mean for each part of the loss, instances, image size, bar. The parts and
// their number depend on the task (detect, segment, pose, classify ...) and are named in a header
// far above; the first one stands for the loss, unless another is not finite. YOLOv5 prints the
// same (ultralytics/engine/trainer.py, yolov5/train.py).
bool ParseUltralytics(const CleanLine& line, RecordList& out) {
  if (IsEnd(line.text)) {
    out.push_back(MakeMarker(MarkerKind::kTrainEnd, "ultralytics", line));
    return true;
  }
  std::string_view rest = line.text;
  const Fraction epoch = ReadFraction(NextCell(rest));
  if (!epoch.index || !IsMemory(NextCell(rest))) return false;
  Number loss;
  Number last;  // not known to be a part of the loss until another number follows
  while (true) {
    std::string_view cell = NextCell(rest);
    if (cell.empty()) return false;
    const bool size = cell.ends_with(':');
    if (size) cell.remove_suffix(1);
    const Number number = WholeNumber(cell);
    if (!number) return false;
    if (size) {
      // `last` is the number of instances.
      if (!loss || !IsIndex(number) || !IsIndex(last)) return false;
      break;
    }
    if (last && (!loss || (std::isfinite(loss.value) && !std::isfinite(last.value)))) loss = last;
    last = number;
  }
  // A bar that had no room for its batch stands for the epoch when it is full.
  const Fraction batch = FindBatch(rest);
  if (!batch.index && !LeftTrimmed(rest).starts_with("100%")) return false;
  Progress progress;
  progress.format = "ultralytics";
  SetStep(progress, batch.index ? batch.index : epoch.index);
  if (!batch.index) progress.step_unit = StepUnit::kEpochs;
  SetLoss(progress, loss);
  progress.epoch = epoch.index.value;
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
