// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/site_targets.h"

#include <string_view>

#include "detectors/model/event_types.h"

namespace rankscope::exporter {

std::vector<Event> TargetsOf(const SchedulerRecord& record,
                             const std::vector<std::string>& targets) {
  std::vector<Event> events;
  if (record.partition.empty()) return events;
  for (const std::string_view target : targets) {
    const size_t colon = target.find(':');
    if (target.substr(0, colon) != record.partition) continue;
    const std::string_view what = target.substr(colon + 1);
    const size_t equals = what.find('=');
    Event event;
    event.type = WireType(EventType::kTarget);
    event.rank.job_id = record.job_id;
    event.str = {{"measure", std::string(what.substr(0, equals))},
                 {"value", std::string(what.substr(equals + 1))},
                 {"partition", record.partition}};
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace rankscope::exporter
