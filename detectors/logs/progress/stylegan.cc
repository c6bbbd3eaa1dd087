// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/pairs.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {

// "tick 5     kimg 20.0     time 3m 15s       sec/tick 37.5    sec/kimg 9.37 ...", by StyleGAN and
// EDM (training_loop.py). A tick is some thousand images; its losses go to a file.
bool ParseStyleGan(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kTick = "tick ", kThousands = "kimg ", kSeconds = "sec/tick ";
  const std::string_view text = line.text;
  if (!text.starts_with(kTick)) return false;
  const Number step = ReadNumber(text.substr(kTick.size()));
  const size_t images = text.find(kThousands);
  if (!IsIndex(step) || images == std::string_view::npos) return false;
  const Number thousands = ReadNumber(LeftTrimmed(text.substr(images + kThousands.size())));
  if (!thousands || thousands.value < 0) return false;
  Progress progress;
  progress.format = "stylegan";
  SetStep(progress, step);
  progress.consumed_samples = thousands.value * 1000;
  if (const size_t at = text.find(kSeconds); at != std::string_view::npos) {
    const Number seconds = ReadNumber(LeftTrimmed(text.substr(at + kSeconds.size())));
    if (seconds) progress.step_seconds = seconds.value;
  }
  const PairList pairs(text);
  if (const Pair* loss = pairs.Find(Key::kLoss); loss != nullptr) SetLoss(progress, loss->value);
  out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
