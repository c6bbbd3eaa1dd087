// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/scheduler_record.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace rankscope {
namespace {

struct NumberRow {
  std::string_view name;
  int64_t SchedulerRecord::*member;
  int64_t absent;
};
constexpr NumberRow kNumbers[] = {
    {"submit", &SchedulerRecord::submit, 0},
    {"start", &SchedulerRecord::start, 0},
    {"end", &SchedulerRecord::end, 0},
    {"elapsed_seconds", &SchedulerRecord::elapsed_seconds, -1},
    {"time_limit_seconds", &SchedulerRecord::time_limit_seconds, -1},
    {"restarts", &SchedulerRecord::restarts, -1},
    {"gpus", &SchedulerRecord::gpus, -1},
    {"priority", &SchedulerRecord::priority, -1},
};

struct TextRow {
  std::string_view name;
  std::string SchedulerRecord::*member;
};
constexpr TextRow kTexts[] = {
    {"state", &SchedulerRecord::state},
    {"event", &SchedulerRecord::event},
    {"by", &SchedulerRecord::by},
    {"reason", &SchedulerRecord::reason},
    {"nodes", &SchedulerRecord::nodes},
    {"failed_node", &SchedulerRecord::failed_node},
    {"exit", &SchedulerRecord::exit},
    {"derived_exit", &SchedulerRecord::derived_exit},
    {"partition", &SchedulerRecord::partition},
    {"dependency", &SchedulerRecord::dependency},
    {"submit_line", &SchedulerRecord::submit_line},
    {"work_dir", &SchedulerRecord::work_dir},
};

// No time and no count of Slurm's is larger; sums and differences stay in range.
constexpr int64_t kMax = int64_t{1} << 40;

int64_t Whole(std::string_view text, int64_t absent) {
  int64_t value = absent;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= kMax ? value : absent;
}

}  // namespace

bool SetField(SchedulerRecord& record, std::string_view name, std::string_view value) {
  for (const NumberRow& row : kNumbers) {
    if (row.name != name) continue;
    record.*row.member = Whole(value, row.absent);
    return true;
  }
  for (const TextRow& row : kTexts) {
    if (row.name != name) continue;
    record.*row.member = value;
    return true;
  }
  return false;
}

}  // namespace rankscope
