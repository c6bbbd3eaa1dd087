// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's events as JSON: in the file that keeps them, on /events, and read by the agents of the
// nodes that a job runs on. What is not UTF-8 is told with U+FFFD. Pure; any thread; nothing
// throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/slurm_report.h"

namespace rankscope {
class JsonWriter;
}

namespace rankscope::exporter::slurm {

// One object, one line, no newline at its end.
std::string EventToJson(const SlurmEvent& event);
// nullopt: no such object, or of a kind that is not on the list.
std::optional<SlurmEvent> EventFromJson(std::string_view line);

// {"schema":1,"last":7,"first_kept":1,"events":[...]}; of the job if one is named, and of the nodes
// that it had at the time; of `since` (ns) or later, with numbers above `after`.
struct EventQuery {
  std::string job_id;  // empty = all jobs and nodes
  int64_t since_ns = INT64_MIN;
  int64_t after = 0;
};
std::string EventsToJson(const SlurmReport& report, const EventQuery& query);
// The same but for "schema", as keys of the object that `w` has open.
void WriteEvents(const SlurmReport& report, const EventQuery& query, JsonWriter& w);
// The events of such a document; nullopt: it is none. `last` is told by `last_number`.
struct EventPage {
  std::vector<SlurmEvent> events;
  int64_t last = 0;
};
std::optional<EventPage> EventsFromJson(std::string_view document);

}  // namespace rankscope::exporter::slurm
