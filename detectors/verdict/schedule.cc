// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

namespace rankscope::engine {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The names of one setting in the commands of Megatron-LM, transformers, fairseq, torchtitan and
// what is written after them; '_' stands for '-' as well.
using Setting = std::string_view;  // names, by blanks
constexpr Setting kPeak = "lr learning_rate";
constexpr Setting kWarmUp =
    "lr_warmup_iters lr_warmup_steps warmup_steps num_warmup_steps warmup_iters warmup_updates";
constexpr Setting kWarmUpShare = "warmup_ratio lr_warmup_fraction";
constexpr Setting kStyle = "lr_decay_style lr_scheduler_type lr_scheduler";
constexpr Setting kDecay = "lr_decay_iters lr_decay_steps";
constexpr Setting kTotal = "train_iters max_steps max_train_steps total_steps max_iters max_update";
constexpr Setting kLowest = "min_lr";
constexpr Setting kAccumulation =
    "gradient_accumulation_steps accumulate_grad_batches grad_accum update_freq";

bool SameName(std::string_view argument, std::string_view name) {
  if (argument.size() != name.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if ((argument[i] == '-' ? '_' : argument[i]) != name[i]) return false;
  }
  return true;
}

bool IsOf(std::string_view argument, Setting names) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    if (SameName(argument, names.substr(0, end))) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

// "--name value" or "--name=value"; the last one counts.
std::string_view TextOf(std::span<const std::string> argv, Setting setting) {
  std::string_view found;
  for (size_t i = 0; i < argv.size(); ++i) {
    std::string_view argument = argv[i];
    if (!argument.starts_with("--")) continue;
    argument.remove_prefix(2);
    const size_t equals = argument.find('=');
    if (!IsOf(argument.substr(0, equals), setting)) continue;
    if (equals != std::string_view::npos) {
      found = argument.substr(equals + 1);
    } else if (i + 1 < argv.size()) {
      found = argv[i + 1];
    }
  }
  return found;
}

double NumberOf(std::span<const std::string> argv, Setting setting) {
  const std::string_view text = TextOf(argv, setting);
  double number = kNone;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : kNone;
}

struct Schedule {
  double peak = kNone, warm_up = 0, total = kNone, lowest = 0;
  std::string_view style;  // linear | cosine | constant; empty = another one, or not told
};

Schedule ReadSchedule(std::span<const std::string> argv, double total_steps) {
  Schedule schedule;
  schedule.peak = NumberOf(argv, kPeak);
  schedule.total = NumberOf(argv, kTotal);
  if (!(schedule.total > 0)) schedule.total = total_steps;
  if (const double decay = NumberOf(argv, kDecay); decay > 0) schedule.total = decay;
  if (const double steps = NumberOf(argv, kWarmUp); steps > 0) {
    schedule.warm_up = steps;
  } else if (const double share = NumberOf(argv, kWarmUpShare); share > 0 && share < 1) {
    schedule.warm_up = share * schedule.total;
  }
  if (const double lowest = NumberOf(argv, kLowest); lowest > 0) schedule.lowest = lowest;
  const std::string_view style = TextOf(argv, kStyle);
  for (const std::string_view known : {"linear", "cosine", "constant"}) {
    if (style == known) schedule.style = known;
  }
  if (style == "constant_with_warmup") schedule.style = "constant";
  return schedule;
}

// The rate as a share of the peak; NaN where the schedule does not say.
double ShareAt(const Schedule& schedule, double step) {
  if (step < schedule.warm_up) return step / schedule.warm_up;
  if (schedule.style == "constant") return 1;
  if (schedule.style.empty() || !(schedule.total > schedule.warm_up)) return kNone;
  const double done = (step - schedule.warm_up) / (schedule.total - schedule.warm_up);
  if (done >= 1) return kNone;  // what comes after its end differs from one to the other
  const double share =
      schedule.style == "linear" ? 1 - done : (1 + std::cos(std::numbers::pi * done)) / 2;
  const double lowest = schedule.lowest / schedule.peak;
  return lowest > 0 && lowest < 1 ? lowest + (1 - lowest) * share : share;
}

}  // namespace

std::optional<OffSchedule> LeavesItsSchedule(std::span<const std::string> argv, double total_steps,
                                             const windows::LearningRateTracker& rate) {
  constexpr int64_t kRecords = 20;
  constexpr double kTimes = 2, kNotable = 0.1;
  if (rate.records() < kRecords || !(rate.last_at() > 0)) return std::nullopt;
  if (NumberOf(argv, kAccumulation) > 1) return std::nullopt;
  const Schedule schedule = ReadSchedule(argv, total_steps);
  if (!(schedule.peak > 0)) return std::nullopt;
  const double share = ShareAt(schedule, rate.last_at());
  // Near zero a few steps make a factor of two.
  if (!(share >= kNotable)) return std::nullopt;
  // Rates that programs scale by the batch or the world are told apart from the command's by their
  // own peak, once they have come down from it.
  constexpr double kRounded = 1.02;
  const bool scaled = rate.peak() > kRounded * schedule.peak;
  if (scaled && rate.last_at() < schedule.warm_up) return std::nullopt;
  const double peak = scaled ? rate.peak() : schedule.peak;
  const double expected = share * peak;
  if (rate.last() <= kTimes * expected && rate.last() >= expected / kTimes) return std::nullopt;
  const bool decays = !schedule.style.empty() && schedule.style != "constant";
  return OffSchedule{expected, std::llround(schedule.warm_up), schedule.style,
                     decays ? std::llround(schedule.total) : 0};
}

}  // namespace rankscope::engine
