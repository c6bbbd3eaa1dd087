// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/scheduler_history.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace rankscope::windows {
namespace {

constexpr std::string_view kWaits[] = {"PENDING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT"};
constexpr std::string_view kGoesOn[] = {"RUNNING", "SUSPENDED", "STOPPED", "COMPLETING"};

// No time and no count of Slurm's is larger; sums and differences stay in range.
constexpr int64_t kMost = int64_t{1} << 40;

std::string OneLine(std::string_view text) {
  std::string out(text.substr(0, SchedulerHistory::kTextCap));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  }
  return out;
}

// -1: no number that could be meant.
int64_t Whole(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return -1;
  return value >= 0 && value <= kMost ? value : -1;
}

template <class List>
bool Among(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

void Replace(std::string& old, std::string& told) {
  if (!told.empty()) old = std::move(told);
}
void Replace(int64_t& old, int64_t told, int64_t absent) {
  if (told != absent) old = told;
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

SchedulerHistory::State SchedulerHistory::OnFact(const SchedulerFact& fact, Timestamp t,
                                                 bool clocked) {
  constexpr std::string_view kOfNodes[] = {"node_state", "node_reason", "node_reason_class"};
  if (Among(kOfNodes, fact.field)) {
    OnNode(fact, t, clocked);
    return {};
  }
  // What the controller's instance tells of a run's life besides its end.
  if (fact.field == "event") {
    if (fact.value == "started") return Commit("RUNNING", fact, t, clocked);
    told_ = {};
    return {};
  }
  if (fact.field == "state") return Commit(OneLine(fact.value), fact, t, clocked);
  Take(fact, t, clocked);
  return {};
}

void SchedulerHistory::OnNode(const SchedulerFact& fact, Timestamp t, bool clocked) {
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
    found->state = OneLine(fact.value);
    found->t = t;
    found->clocked = clocked;
  }
}

void SchedulerHistory::Take(const SchedulerFact& fact, Timestamp t, bool clocked) {
  const std::string& field = fact.field;
  const std::string& value = fact.value;
  if (!fact.node.empty()) told_.failed_node = OneLine(fact.node);
  if (field == "submit") {
    submitted_ = told_.submit_t = clocked ? t : Timestamp{};
  } else if (field == "start") {
    told_.start = std::max<int64_t>(Whole(value), 0);
    told_.start_t = t;
    told_.clocked = clocked;
  } else if (field == "end") {
    told_.end = std::max<int64_t>(Whole(value), 0);
    told_.end_t = t;
  } else if (field == "elapsed_seconds") {
    told_.elapsed_seconds = Whole(value);
  } else if (field == "time_limit_seconds") {
    time_limit_seconds_ = told_.time_limit_seconds = Whole(value);
    origin_ = OneLine(fact.origin);
  } else if (field == "restarts") {
    restarts_ = told_.restarts = Whole(value);
    origin_ = OneLine(fact.origin);
  } else if (field == "gpus") {
    gpus_ = Whole(value);
  } else if (field == "by") {
    told_.by = OneLine(value);
  } else if (field == "reason") {
    told_.reason = OneLine(value);
  } else if (field == "nodes") {
    told_.nodes = OneLine(value);
  } else if (field == "failed_node") {
    told_.failed_node = OneLine(value);
  } else if (field == "exit") {
    told_.exit = OneLine(value);
  }
}

// A run is known by its start. One whose start is not told is the newest, if that goes on.
SchedulerRun* SchedulerHistory::RunOf(const SchedulerRun& told) {
  if (told.start == 0) return runs_.empty() || runs_.back().ended() ? nullptr : &runs_.back();
  auto at = std::lower_bound(
      runs_.begin(), runs_.end(), told.start,
      [](const SchedulerRun& known, int64_t start) { return known.start < start; });
  if (at != runs_.end() && at->start == told.start) return &*at;
  if (runs_.size() == kMostRuns) {
    ++dropped_;
    if (at == runs_.begin()) return nullptr;  // older than all that there is room for
    --at;
    runs_.erase(runs_.begin());
  }
  at = runs_.insert(at, SchedulerRun{});
  at->start = told.start;
  at->start_t = told.start_t;
  at->clocked = told.clocked;
  return &*at;
}

SchedulerHistory::State SchedulerHistory::Commit(std::string_view state, const SchedulerFact& fact,
                                                 Timestamp t, bool clocked) {
  SchedulerRun told = std::exchange(told_, {});
  const bool another = state_ != state;
  state_ = state;
  state_origin_ = OneLine(fact.origin);
  if (SchedulerStateWaits(state)) return {another, nullptr};
  SchedulerRun* const run = RunOf(told);
  if (run == nullptr) return {another, nullptr};
  // An answer that was overtaken by another.
  if (run->ended() && SchedulerStateGoesOn(state)) return {false, run};
  const bool changed = run->state != state;
  run->state = state;
  run->origin = state_origin_;
  if (!fact.node.empty() && told.failed_node.empty()) told.failed_node = OneLine(fact.node);
  Replace(run->end, told.end, 0);
  Replace(run->elapsed_seconds, told.elapsed_seconds, -1);
  Replace(run->time_limit_seconds, told.time_limit_seconds, -1);
  Replace(run->restarts, told.restarts, -1);
  Replace(run->by, told.by);
  Replace(run->reason, told.reason);
  Replace(run->nodes, told.nodes);
  Replace(run->failed_node, told.failed_node);
  Replace(run->exit, told.exit);
  if (run->ended() && changed) {
    run->end_t = told.end > 0 ? told.end_t : t;
    if (run->end == 0 && clocked) run->end = fact.wall_ns / 1'000'000'000;
    run->clocked = run->clocked && clocked;
  }
  return {changed, run};
}

}  // namespace rankscope::windows
