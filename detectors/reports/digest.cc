// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/digest.h"

#include <algorithm>
#include <map>
#include <optional>

#include "detectors/model/event_types.h"
#include "detectors/reports/inspector.h"

namespace rankscope::reports {
namespace {

constexpr size_t kMaxText = 256;  // of one name, list of sizes or place in a program
constexpr size_t kMaxRankList = 1024;
constexpr size_t kMaxCommunicators = 64;

std::string Cut(std::string_view text) {
  return std::string(text.substr(0, kMaxText));
}

void Put(Event& event, std::string_view key, std::string_view value) {
  if (!value.empty()) event.str.push_back({std::string(key), Cut(value)});
}

bool Waits(const FlightGroup& group) {
  return (group.last_enqueued >= 0 && group.last_completed < group.last_enqueued) ||
         !group.peers.empty();
}

}  // namespace

std::string WriteRanks(const std::vector<int32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    const int64_t stride = i + 1 < ranks.size() ? int64_t{ranks[i + 1]} - ranks[i] : int64_t{0};
    while (stride > 0 && last + 1 < ranks.size() &&
           int64_t{ranks[last + 1]} - ranks[last] == stride) {
      ++last;
    }
    // Two are a run only where they are neighbours.
    if (last == i + 1 && stride != 1) last = i;
    if (!text.empty()) text += ',';
    text += std::to_string(ranks[i]);
    if (last > i) {
      text += '-' + std::to_string(ranks[last]);
      if (stride != 1) text += '/' + std::to_string(stride);
    }
    if (text.size() > kMaxRankList) return {};
    i = last + 1;
  }
  return text;
}

std::vector<Event> TellFlightDump(const FlightDump& dump, int32_t rank, const ProcessKey& process,
                                  int64_t written_ns) {
  std::vector<const FlightGroup*> groups;
  for (const FlightGroup& group : dump.groups) groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(), [](const FlightGroup* a, const FlightGroup* b) {
    return Waits(*a) > Waits(*b);
  });
  const bool cut = dump.cut || groups.size() > kMaxToldGroups;
  if (groups.size() > kMaxToldGroups) groups.resize(kMaxToldGroups);

  const auto begin_event = [&](int64_t index) {
    Event event;
    event.type = WireType(EventType::kFlightRecord);
    event.process = process;
    Put(event, "version", dump.version);
    Put(event, "nccl", dump.nccl_version);
    event.num = {{"rank", rank},
                 {"index", index},
                 {"groups", static_cast<int64_t>(groups.size())},
                 {"cut", cut ? 1 : 0},
                 {"written_ns", written_ns}};
    return event;
  };
  std::vector<Event> events;
  if (groups.empty()) events.push_back(begin_event(0));
  for (const FlightGroup* group : groups) {
    Event event = begin_event(static_cast<int64_t>(events.size()));
    Put(event, "group", group->name);
    Put(event, "description", group->description);
    if (const std::string members = WriteRanks(group->ranks); !members.empty())
      event.str.push_back({"members", members});
    event.num.push_back({"enqueued", group->last_enqueued});
    event.num.push_back({"completed", group->last_completed});
    event.num.push_back({"entries", group->entries});
    if (group->has_pending) {
      Put(event, "operation", group->pending.name);
      Put(event, "sizes", group->pending.sizes);
      Put(event, "dtype", group->pending.dtype);
      Put(event, "state", group->pending.state);
      Put(event, "caller", group->pending.caller);
      event.num.push_back({"pending", group->pending.sequence});
      event.num.push_back({"created_ns", group->pending.created_ns});
      event.num.push_back({"timeout_ms", group->pending.timeout_ms});
    }
    if (const std::string peers = WriteRanks(group->peers); !peers.empty()) {
      event.str.push_back({"peers", peers});
      Put(event, "exchange", group->exchange.name);
      event.num.push_back({"exchange_sequence", group->exchange.sequence});
      event.num.push_back({"exchange_created_ns", group->exchange.created_ns});
      event.num.push_back({"exchange_timeout_ms", group->exchange.timeout_ms});
    }
    events.push_back(std::move(event));
  }
  return events;
}

std::vector<Event> TellInspectorLines(std::string_view text, const ProcessKey& process,
                                      size_t& used) {
  struct Sum {
    InspectorRecord last;
    int64_t records = 0;
    int64_t dropped = 0;
    std::vector<double> bandwidths;
  };
  constexpr size_t kMostBandwidths = 4096;
  std::map<std::string, Sum> sums;
  used = 0;
  for (;;) {
    const size_t end = text.find('\n', used);
    if (end == std::string_view::npos) break;
    const auto record = ReadInspectorLine(text.substr(used, end - used));
    used = end + 1;
    if (!record) continue;
    if (!sums.contains(record->communicator) && sums.size() >= kMaxCommunicators) continue;
    Sum& sum = sums[record->communicator];
    sum.dropped += std::max<int64_t>(record->dropped, 0);
    if (record->operation.empty()) continue;
    ++sum.records;
    if (record->bus_bytes_per_second > 0 && sum.bandwidths.size() < kMostBandwidths)
      sum.bandwidths.push_back(record->bus_bytes_per_second);
    sum.last = *record;
  }
  std::vector<Event> events;
  for (auto& [communicator, sum] : sums) {
    if (sum.records == 0 && sum.dropped == 0) continue;
    Event event;
    event.type = WireType(EventType::kInspectorRecord);
    event.process = process;
    Put(event, "communicator", communicator);
    Put(event, "operation", sum.last.operation);
    event.num = {{"rank", sum.last.rank},
                 {"ranks", sum.last.ranks},
                 {"nodes", sum.last.nodes},
                 {"sequence", sum.last.sequence},
                 {"bytes", sum.last.bytes},
                 {"records", sum.records},
                 {"dropped", sum.dropped},
                 {"dumped_us", sum.last.dumped_us},
                 {"on_gpu", sum.last.timed_on_gpu ? 1 : 0}};
    if (!sum.bandwidths.empty()) {
      const auto middle = sum.bandwidths.begin() + static_cast<int64_t>(sum.bandwidths.size() / 2);
      std::nth_element(sum.bandwidths.begin(), middle, sum.bandwidths.end());
      event.num.push_back({"bus_bytes_per_second", static_cast<int64_t>(*middle)});
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace rankscope::reports
