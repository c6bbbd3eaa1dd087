// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/meters.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {

// "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.91)  Time: 1.2s,  700.1/s  (1.3s,  690.2/s)  LR: ..."
bool ParseTimm(const CleanLine& line, RecordList& out) {
  const std::string_view text = StripLoggerPrefix(line.text);
  if (!text.starts_with("Train: ")) return false;
  const PairList pairs(text);
  if (pairs.size() == 0 || !KeyIs(pairs[0].key, "train") || !ReadMeter(pairs, "timm", out))
    return false;
  Progress& progress = std::get<Progress>(out.back());
  for (const Pair& pair : pairs) {
    if (pair.unit != "/s") continue;
    progress.samples_per_second = pair.value.value;
    break;  // the average stands behind
  }
  return true;
}

}  // namespace rankscope::logs
