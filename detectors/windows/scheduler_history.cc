// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/scheduler_history.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rankscope::windows {
namespace {

constexpr std::string_view kWaits[] = {"PENDING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT"};
constexpr std::string_view kGoesOn[] = {"RUNNING", "SUSPENDED", "STOPPED", "COMPLETING"};

// No time and no count of Slurm's is larger; sums and differences stay in range.
constexpr int64_t kMax = int64_t{1} << 40;
// In nanoseconds, a later time is none (the year 2106).
constexpr int64_t kMaxSecond = int64_t{1} << 32;

std::string OneLine(std::string_view text) {
  std::string out(text.substr(0, SchedulerHistory::kTextCap));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  }
  return out;
}

int64_t Meant(int64_t value, int64_t absent) {
  return value >= 0 && value <= kMax ? value : absent;
}

template <class List>
bool Among(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

void Replace(std::string& old, const std::string& told) {
  if (!told.empty()) old = told;
}
void Replace(int64_t& old, int64_t told, int64_t absent) {
  if (told != absent) old = told;
}

// The accounting's row of a job that was cancelled in the queue: Slurm writes the time of the
// cancel as its start, too.
bool NeverRan(const SchedulerRecord& record, std::string_view state) {
  return state.starts_with("CANCELLED") && record.nodes.empty() && record.elapsed_seconds == 0;
}

}  // namespace

bool SchedulerStateWaits(std::string_view state) {
  return Among(kWaits, state);
}

bool SchedulerStateGoesOn(std::string_view state) {
  return Among(kWaits, state) || Among(kGoesOn, state);
}

bool SchedulerRun::ended() const {
  return !state.empty() && !SchedulerStateGoesOn(state);
}

double SchedulerRun::seconds() const {
  if (elapsed_seconds >= 0) return static_cast<double>(elapsed_seconds);
  if (start > 0 && end >= start) return static_cast<double>(end - start);
  return std::numeric_limits<double>::quiet_NaN();
}

std::optional<Timestamp> WallClock::At(int64_t wall_ns) const {
  if (wall_ns <= 0 || wall_ns > kMaxSecond * 1'000'000'000 || offset_ns <= 0) return std::nullopt;
  return std::min(now, Timestamp{wall_ns - offset_ns});
}

std::optional<Timestamp> WallClock::AtSecond(int64_t since_1970) const {
  if (since_1970 <= 0 || since_1970 > kMaxSecond) return std::nullopt;
  return At(since_1970 * 1'000'000'000);
}

SchedulerHistory::State SchedulerHistory::OnRecord(SchedulerRecord record, const WallClock& clock) {
  for (std::string* text : {&record.by, &record.reason, &record.nodes, &record.failed_node,
                            &record.exit, &record.origin, &record.state})
    *text = OneLine(*text);
  for (int64_t* second : {&record.submit, &record.start, &record.end}) *second = Meant(*second, 0);
  for (int64_t* number :
       {&record.elapsed_seconds, &record.time_limit_seconds, &record.restarts, &record.gpus})
    *number = Meant(*number, -1);
  if (record.submit > 0) submitted_ = clock.AtSecond(record.submit).value_or(Timestamp{});
  if (record.time_limit_seconds >= 0 || record.restarts >= 0) origin_ = record.origin;
  Replace(time_limit_seconds_, record.time_limit_seconds, -1);
  Replace(restarts_, record.restarts, -1);
  Replace(gpus_, record.gpus, -1);
  if (!record.state.empty()) return Commit(record, record.state, clock);
  // What the controller's instance tells of a run's life besides its end.
  return record.event == "started" ? Commit(record, "RUNNING", clock) : State{};
}

std::optional<SchedulerRecord> SchedulerHistory::OnFact(const SchedulerFact& fact,
                                                        const WallClock& clock) {
  constexpr std::string_view kOfNodes[] = {"node_state", "node_reason", "node_reason_class"};
  if (Among(kOfNodes, fact.field)) {
    OnNode(fact, clock);
    return std::nullopt;
  }
  constexpr size_t kMaxValue = size_t{64} << 10;  // a submit line; others are a word or a path
  if (!SetField(told_, fact.field, std::string_view(fact.value).substr(0, kMaxValue)))
    return std::nullopt;
  if (!fact.node.empty()) told_.failed_node = fact.node;
  if (fact.field != "state" && fact.field != "event") return std::nullopt;
  told_.job_id = fact.job_id;
  told_.origin = fact.origin;
  told_.wall_ns = fact.wall_ns;
  return std::exchange(told_, {});
}

void SchedulerHistory::OnNode(const SchedulerFact& fact, const WallClock& clock) {
  const std::string name = OneLine(fact.node);
  if (name.empty()) return;
  auto found = std::find_if(nodes_.begin(), nodes_.end(),
                            [&name](const SchedulerNode& each) { return each.node == name; });
  if (found == nodes_.end()) {
    if (nodes_.size() == kMostNodes) nodes_.erase(nodes_.begin());
    nodes_.emplace_back().node = name;
    found = nodes_.end() - 1;
  }
  found->origin = OneLine(fact.origin);
  if (fact.field == "node_reason") {
    found->reason = OneLine(fact.value);
  } else if (fact.field == "node_reason_class") {
    found->reason_class = OneLine(fact.value);
  } else if (fact.field == "node_state" && found->state != fact.value) {
    const auto happened = clock.At(fact.wall_ns);
    found->state = OneLine(fact.value);
    found->t = happened.value_or(clock.now);
    found->clocked = happened.has_value();
  }
}

// A run is known by its start. One whose start is not told is the newest, if that goes on.
SchedulerRun* SchedulerHistory::RunOf(int64_t start, const WallClock& clock) {
  if (start == 0) return runs_.empty() || runs_.back().ended() ? nullptr : &runs_.back();
  auto at = std::lower_bound(
      runs_.begin(), runs_.end(), start,
      [](const SchedulerRun& known, int64_t second) { return known.start < second; });
  if (at != runs_.end() && at->start == start) return &*at;
  if (runs_.size() == kMostRuns) {
    ++dropped_;
    if (at == runs_.begin()) return nullptr;  // older than all that there is room for
    --at;
    runs_.erase(runs_.begin());
  }
  at = runs_.insert(at, SchedulerRun{});
  const auto started = clock.AtSecond(start);
  at->start = start;
  at->start_t = started.value_or(clock.now);
  at->clocked = started.has_value();
  return &*at;
}

SchedulerHistory::State SchedulerHistory::Commit(const SchedulerRecord& record,
                                                 std::string_view state, const WallClock& clock) {
  const bool another = state_ != state;
  state_ = state;
  state_origin_ = record.origin;
  const bool queued = SchedulerStateWaits(state) || NeverRan(record, state);
  SchedulerRun* const run = queued ? nullptr : RunOf(record.start, clock);
  if (run == nullptr) return {another, nullptr, record.by};
  // An answer that was overtaken by another.
  if (run->ended() && SchedulerStateGoesOn(state)) return {false, run, record.by};
  const bool ended_now = run->state != state;
  // The same end, and who asked for it: news.
  const bool changed = ended_now || (run->by.empty() && !record.by.empty());
  run->state = state;
  run->origin = state_origin_;
  Replace(run->end, record.end, 0);
  Replace(run->elapsed_seconds, record.elapsed_seconds, -1);
  Replace(run->time_limit_seconds, record.time_limit_seconds, -1);
  Replace(run->restarts, record.restarts, -1);
  Replace(run->by, record.by);
  Replace(run->reason, record.reason);
  Replace(run->nodes, record.nodes);
  Replace(run->failed_node, record.failed_node);
  Replace(run->exit, record.exit);
  if (run->ended() && ended_now) {
    const auto happened = clock.At(record.wall_ns);
    const Timestamp t = happened.value_or(clock.now);
    run->end_t = record.end > 0 ? clock.AtSecond(record.end).value_or(clock.now) : t;
    if (run->end == 0 && happened) run->end = record.wall_ns / 1'000'000'000;
    run->clocked = run->clocked && happened.has_value();
  }
  return {changed, run, record.by};
}

}  // namespace rankscope::windows
