// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/wrapper_words.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/masked_line.h"
#include "detectors/model/event_types.h"
#include "exporter/run/child.h"

namespace rankscope::run {
namespace {

// A file is smaller; two of these fit into a number.
constexpr int64_t kMostOffset = int64_t{1} << 60;

// A wrapper records these for its own judgement.
bool IsForItself(const Observation& observation) {
  return std::holds_alternative<Tick>(observation.kind) ||
         std::holds_alternative<Epoch>(observation.kind) ||
         std::holds_alternative<SourceState>(observation.kind);
}

// Bounded like the lines that the daemon reads itself, and masked again.
Heard OfLine(const Observation& observation) {
  Observation own = observation;
  auto& line = std::get<LogLine>(own.kind);
  line.offset = std::clamp<int64_t>(line.offset, 0, kMostOffset);
  line.lost_before = std::clamp<int64_t>(line.lost_before, 0, kMostOffset);
  line.cut_bytes = std::max(line.cut_bytes, 0);
  line.text = line.text.substr(0, logs::kLineCap);
  std::string masked;
  logs::MaskText(line, masked);
  line.writer = {};
  return Keep(std::move(own));
}

}  // namespace

Heard Keep(Observation observation) {
  Heard heard;
  if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
    heard.text = line->text;
    heard.stream_name = line->stream_name;
  }
  heard.observation = std::move(observation);
  return heard;
}

const Observation& Heard::Bound() {
  if (auto* line = std::get_if<LogLine>(&observation.kind)) {
    line->text = text;
    line->stream_name = stream_name;
  }
  return observation;
}

// Time, other jobs' facts, the kernel's and the scheduler's are not its to say.
Sifted WrapperWords::Sift(const Observation& observation) const {
  if (IsForItself(observation)) return {};
  if (const auto* mark = std::get_if<RunMark>(&observation.kind);
      mark != nullptr && mark->job_id == job_id &&
      (mark->what == RunMark::What::kBegin || mark->what == RunMark::What::kEnd ||
       mark->what == RunMark::What::kStreamsClosed)) {
    Observation own = observation;
    std::get<RunMark>(own.kind).root = root.key;
    std::get<RunMark>(own.kind).uid = peer.uid;
    std::get<RunMark>(own.kind).from_folder = false;  // that is the daemon's to say
    return {Keep(std::move(own))};
  }
  const auto* start = std::get_if<ProcessStart>(&observation.kind);
  if (start != nullptr && start->job_id == job_id && start->key == claimed_root &&
      root.key.pid != 0) {
    // Its arguments and its environment are the user's own words anyway; the rest is the kernel's.
    Observation own = observation;
    auto& child = std::get<ProcessStart>(own.kind);
    child.key = root.key;
    child.parent = peer.process;
    child.uid = peer.uid;
    child.cgroup = root.cgroup;
    child.ns_pids = root.ns_pids;
    return {Keep(std::move(own))};
  }
  // What the user expects of the job is the user's to say.
  const auto* event = std::get_if<Event>(&observation.kind);
  if (event != nullptr && event->type == WireType(EventType::kTarget) &&
      event->rank.job_id == job_id) {
    Observation own = observation;
    Event& target = std::get<Event>(own.kind);
    target.process = {};
    target.rank.rank = -1;
    return {Keep(std::move(own))};
  }
  const auto* line = std::get_if<LogLine>(&observation.kind);
  if (line != nullptr && line->job_id == job_id && line->stream >= 1 && line->stream <= kStreams)
    return {OfLine(observation)};
  // The start of a command that had ended before it was looked for is no lie.
  return {std::nullopt, start == nullptr || start->key != claimed_root};
}

}  // namespace rankscope::run
