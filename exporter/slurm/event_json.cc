// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/event_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "detectors/document/verdict_json.h"
#include "detectors/model/host_list.h"

namespace rankscope::exporter::slurm {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFacts = 64;
constexpr size_t kMaxText = 4096;

bool IsKind(std::string_view kind) {
  return std::find(std::begin(kSlurmEventKinds), std::end(kSlurmEventKinds), kind) !=
         std::end(kSlurmEventKinds);
}

Json ToJson(const SlurmEvent& event) {
  Json out;
  out["number"] = event.number;
  out["time"] = Rfc3339(event.wall_ns);
  out["wall_ns"] = event.wall_ns;
  if (!event.job_id.empty()) out["job_id"] = event.job_id;
  if (!event.node.empty()) out["node"] = event.node;
  out["kind"] = event.kind;
  out["reason"] = event.reason;
  out["old"] = event.was;
  out["new"] = event.is;
  out["source"] = event.source;
  if (!event.facts.empty()) {
    Json& facts = out["facts"];
    for (const KeyValue& fact : event.facts) facts[fact.key] = fact.value;
  }
  return out;
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

std::string Print(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return found->get_ref<const std::string&>().substr(0, kMaxText);
}

int64_t Whole(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

std::optional<SlurmEvent> FromJson(const Json& object) {
  if (!object.is_object()) return std::nullopt;
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
  if (const auto facts = object.find("facts"); facts != object.end() && facts->is_object()) {
    for (const auto& [key, value] : facts->items()) {
      if (event.facts.size() >= kMaxFacts) break;
      if (value.is_string())
        event.facts.push_back({key.substr(0, kMaxText), Text(*facts, key.c_str())});
    }
  }
  return event;
}

}  // namespace

std::string EventToJson(const SlurmEvent& event) {
  return Print(ToJson(event));
}

std::optional<SlurmEvent> EventFromJson(std::string_view line) {
  return FromJson(Json::parse(line, nullptr, false));
}

std::string EventsToJson(const SlurmReport& report, const EventQuery& query) {
  Json out;
  out["schema"] = 1;
  out["last"] = report.events->empty() ? report.first_kept - 1 : report.events->back()->number;
  out["first_kept"] = report.first_kept;
  Json& events = out["events"] = Json::array();
  const NodesOfJob nodes(report, query.job_id);
  for (const auto& event : *report.events) {
    if (event->number <= query.after || event->wall_ns < query.since_ns) continue;
    if (!query.job_id.empty() && event->job_id != query.job_id && !nodes.Had(*event)) continue;
    events.push_back(ToJson(*event));
  }
  return Print(out);
}

std::optional<EventPage> EventsFromJson(std::string_view document) {
  const Json json = Json::parse(document, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto events = json.find("events");
  if (Whole(json, "schema") != 1 || events == json.end() || !events->is_array())
    return std::nullopt;
  EventPage page;
  page.last = Whole(json, "last");
  for (const Json& each : *events) {
    if (auto event = FromJson(each)) page.events.push_back(std::move(*event));
  }
  return page;
}

}  // namespace rankscope::exporter::slurm
