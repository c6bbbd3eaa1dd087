// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/event_json.h"

#include <simdjson.h>

#include <algorithm>
#include <set>
#include <utility>

#include "detectors/document/json_writer.h"
#include "detectors/document/verdict_json.h"
#include "detectors/model/host_list.h"

namespace rankscope::exporter::slurm {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxFacts = 64;
constexpr size_t kMaxText = 4096;

bool IsKind(std::string_view kind) {
  return std::find(std::begin(kSlurmEventKinds), std::end(kSlurmEventKinds), kind) !=
         std::end(kSlurmEventKinds);
}

void WriteEvent(const SlurmEvent& event, JsonWriter& w) {
  w.Open('{');
  w.Integer("number", event.number);
  w.Text("time", Rfc3339(event.wall_ns));
  w.Integer("wall_ns", event.wall_ns);
  w.TextIfAny("job_id", event.job_id);
  w.TextIfAny("node", event.node);
  w.Text("kind", event.kind);
  w.Text("reason", event.reason);
  w.Text("old", event.was);
  w.Text("new", event.is);
  w.Text("source", event.source);
  if (!event.facts.empty()) {
    w.Key("facts");
    w.Open('{');
    for (const KeyValue& fact : event.facts) w.Text(fact.key, fact.value);
    w.Close('}');
  }
  w.Close('}');
}

// What befell the nodes that a job had, while it had them and a little before and after: a node is
// called down only when it has been silent for SlurmdTimeout, 300 s by default.
class NodesOfJob {
 public:
  NodesOfJob(const SlurmReport& report, const std::string& job_id) {
    if (job_id.empty()) return;
    bool goes_on = false;
    for (const auto& event : *report.events) {
      if (event->job_id != job_id) continue;
      if (event->kind.starts_with("step_")) continue;
      const bool started = event->kind == "started";
      const bool paused =
          event->kind == "suspended" || event->kind == "resumed" || event->kind == "updated";
      goes_on = started || (goes_on && paused);
      if (started && begin_ns_ == INT64_MAX) begin_ns_ = event->wall_ns;
      end_ns_ = std::max(end_ns_, event->wall_ns);
      for (const KeyValue& fact : event->facts) {
        if (fact.key != "nodes") continue;
        for (std::string& name : ExpandHostList(fact.value).names) names_.insert(std::move(name));
      }
    }
    if (goes_on) end_ns_ = INT64_MAX - kAfterNs;
  }
  bool Had(const SlurmEvent& event) const {
    return event.job_id.empty() && names_.contains(event.node) && begin_ns_ != INT64_MAX &&
           event.wall_ns >= begin_ns_ && event.wall_ns <= end_ns_ + kAfterNs;
  }

 private:
  static constexpr int64_t kAfterNs = int64_t{600} * 1'000'000'000;
  std::set<std::string> names_;
  int64_t begin_ns_ = INT64_MAX, end_ns_ = 0;
};

// At most kMaxText bytes; no character is cut.
std::string Bounded(std::string_view text) {
  size_t size = std::min(text.size(), kMaxText);
  while (size > 0 && size < text.size() && (static_cast<uint8_t>(text[size]) & 0xC0) == 0x80)
    --size;
  return std::string(text.substr(0, size));
}

// Empty, or 0: the object has no such member of that type.
std::string Text(dom::object object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) ? std::string() : Bounded(text);
}

int64_t Whole(dom::object object, std::string_view key) {
  int64_t value = 0;
  return object.at_key(key).get(value) ? 0 : value;
}

std::optional<SlurmEvent> FromJson(dom::element element) {
  dom::object object;
  if (element.get(object)) return std::nullopt;
  SlurmEvent event;
  event.number = Whole(object, "number");
  event.wall_ns = Whole(object, "wall_ns");
  event.job_id = Text(object, "job_id");
  event.node = Text(object, "node");
  event.kind = Text(object, "kind");
  event.reason = Text(object, "reason");
  event.was = Text(object, "old");
  event.is = Text(object, "new");
  event.source = Text(object, "source");
  if (!IsKind(event.kind) || (event.job_id.empty() && event.node.empty())) return std::nullopt;
  dom::object facts;
  if (object.at_key("facts").get(facts)) return event;
  for (const dom::key_value_pair fact : facts) {
    if (event.facts.size() >= kMaxFacts) break;
    std::string_view value;
    if (!fact.value.get(value)) event.facts.push_back({Bounded(fact.key), Bounded(value)});
  }
  return event;
}

}  // namespace

std::string EventToJson(const SlurmEvent& event) {
  JsonWriter w;
  WriteEvent(event, w);
  return w.Take();
}

std::optional<SlurmEvent> EventFromJson(std::string_view line) {
  dom::parser parser;
  dom::element element;
  if (parser.parse(line.data(), line.size()).get(element)) return std::nullopt;
  return FromJson(element);
}

std::string EventsToJson(const SlurmReport& report, const EventQuery& query) {
  JsonWriter w;
  w.Open('{');
  w.Integer("schema", 1);
  WriteEvents(report, query, w);
  w.Close('}');
  return w.Take();
}

void WriteEvents(const SlurmReport& report, const EventQuery& query, JsonWriter& w) {
  w.Integer("last", report.events->empty() ? report.first_kept - 1 : report.events->back()->number);
  w.Integer("first_kept", report.first_kept);
  w.Key("events");
  w.Open('[');
  const NodesOfJob nodes(report, query.job_id);
  for (const auto& event : *report.events) {
    if (event->number <= query.after || event->wall_ns < query.since_ns) continue;
    if (!query.job_id.empty() && event->job_id != query.job_id && !nodes.Had(*event)) continue;
    WriteEvent(*event, w);
  }
  w.Close(']');
}

std::optional<EventPage> EventsFromJson(std::string_view document) {
  dom::parser parser;
  dom::object object;
  dom::array events;
  if (parser.parse(document.data(), document.size()).get(object)) return std::nullopt;
  if (Whole(object, "schema") != 1 || object.at_key("events").get(events)) return std::nullopt;
  EventPage page;
  page.last = Whole(object, "last");
  for (const dom::element each : events) {
    if (auto event = FromJson(each)) page.events.push_back(std::move(*event));
  }
  return page;
}

}  // namespace rankscope::exporter::slurm
