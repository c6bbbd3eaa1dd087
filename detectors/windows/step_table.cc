// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/step_table.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace rankscope::windows {
namespace {

std::string OneLine(std::string_view text) {
  std::string out(text.substr(0, StepTable::kTextCap));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = ' ';
  }
  return out;
}

// Times of records are cut to whole seconds.
constexpr Duration kWholeSecond = Seconds(1);

bool IsStepId(std::string_view id) {
  return !id.empty() && id.size() <= 32 && id != "extern";
}

}  // namespace

bool StepSeen::told() const {
  return !state.empty() && !SchedulerStateGoesOn(state);
}

// The batch step's record is of the script, which does more than train.
// A step that srun ends itself (--wait) is COMPLETED by its record, whatever its tasks died of.
bool StepSeen::ended_well() const {
  const bool killed = alive == 0 && (bad_status & 0x7f) != 0;
  if (killed) return false;
  if (told() && !is_batch()) return state == "COMPLETED" && (exit.empty() || exit == "0:0");
  return alive == 0 && world > 0 && ranks >= world && well == ranks;
}

bool StepSeen::ended_badly() const {
  if (told() && !is_batch()) return !ended_well();
  return alive == 0 && bad_status != 0;
}

int32_t StepSeen::exit_code() const {
  const auto of_wait = [](int32_t status) {
    const int32_t signal = status & 0x7f;
    return signal != 0 ? 128 + signal : (status >> 8) & 0xff;
  };
  if (bad_status != 0) return of_wait(bad_status);
  int32_t code = 0, signal = 0;
  const char* const last = exit.data() + exit.size();
  const auto [colon, error] = std::from_chars(exit.data(), last, code);
  if (error != std::errc() || colon == last || *colon != ':') return 0;
  std::from_chars(colon + 1, last, signal);
  return code != 0 ? code : signal != 0 ? 128 + signal : 0;
}

StepSeen* StepTable::Find(std::string_view id) {
  const auto found = std::find_if(steps_.begin(), steps_.end(),
                                  [id](const StepSeen& step) { return step.id == id; });
  return found == steps_.end() ? nullptr : &*found;
}

StepSeen& StepTable::FindOrAdd(std::string_view id) {
  if (StepSeen* known = Find(id)) return *known;
  if (steps_.size() >= kMaxSteps) {
    const auto idle = std::find_if(steps_.begin(), steps_.end(), [](const StepSeen& step) {
      return step.progress == 0 && step.alive == 0;
    });
    steps_.erase(idle == steps_.end() ? steps_.begin() : idle);
  }
  steps_.emplace_back().id = id;
  return steps_.back();
}

StepTable::Rank* StepTable::RankOf(const ProcessKey& process) {
  const auto found = std::find_if(ranks_.rbegin(), ranks_.rend(),
                                  [&](const Rank& rank) { return rank.process == process; });
  return found == ranks_.rend() ? nullptr : &*found;
}

ProcessKey StepTable::LastRankOf(std::string_view id) const {
  const auto found = std::find_if(ranks_.rbegin(), ranks_.rend(),
                                  [id](const Rank& rank) { return rank.step == id; });
  return found == ranks_.rend() ? ProcessKey{} : found->process;
}

// A process that becomes another program tells of itself again.
void StepTable::OnRankStart(const attribution::ProcessInfo& rank, Timestamp t) {
  if (!IsStepId(rank.step_id) || RankOf(rank.key) != nullptr) return;
  StepSeen& step = FindOrAdd(rank.step_id);
  if (step.ranks == 0) {
    // A record of an earlier run of the job, whose steps had the same numbers.
    if (step.told() && step.told_end + kWholeSecond < t) {
      step.state.clear();
      step.exit.clear();
      step.nodes.clear();
    }
    step.begin = t;
  }
  ++step.ranks;
  ++step.alive;
  step.world = std::max(step.world, rank.world_size);
  if (ranks_.size() >= kMaxRanks) ranks_.erase(ranks_.begin());
  ranks_.push_back({rank.key, rank.step_id, true});
}

void StepTable::OnProgram(const attribution::ProcessInfo& rank, std::string_view program) {
  if (program.empty()) return;
  if (StepSeen* step = Find(rank.step_id)) step->program = OneLine(program);
}

void StepTable::OnRankExit(const attribution::ProcessInfo& rank, Timestamp t) {
  Rank* const known = RankOf(rank.key);
  if (known == nullptr || !known->alive) return;
  known->alive = false;
  StepSeen* const step = Find(known->step);
  if (step == nullptr || step->alive == 0) return;
  --step->alive;
  step->end = t;
  // An end of which nobody knows the status is no good one.
  if (rank.status_known && rank.wait_status == 0) ++step->well;
  if (rank.status_known && rank.wait_status != 0 && step->bad_status == 0)
    step->bad_status = rank.wait_status;
}

// A rank itself; else the only step that runs. What is read from a file comes a little later than
// it was written: a step that has just begun has not written it yet.
StepSeen* StepTable::Speaking(const ProcessKey& writer, Timestamp t) {
  constexpr Duration kReadWithin = Seconds(2);
  const Rank* const rank = writer.pid == 0 ? nullptr : RankOf(writer);
  if (rank != nullptr) return Find(rank->step);
  StepSeen* runs = nullptr;
  StepSeen* ended = nullptr;
  int running = 0;
  for (StepSeen& step : steps_) {
    if (step.ranks == 0) continue;
    const bool young = t - step.begin < kReadWithin;
    if (step.alive > 0 && !young) {
      ++running;
      runs = &step;
    }
    const bool just = step.alive == 0 && t - step.end < kReadWithin;
    if (just && (ended == nullptr || step.end > ended->end)) ended = &step;
  }
  if (running == 1) return runs;
  if (running > 1) return nullptr;
  if (ended != nullptr) return ended;
  // None but one that has just begun.
  const auto young = std::find_if(steps_.begin(), steps_.end(),
                                  [](const StepSeen& step) { return step.alive > 0; });
  return young == steps_.end() ? nullptr : &*young;
}

void StepTable::OnProgress(const ProcessKey& writer, Timestamp t) {
  StepSeen* const step = Speaking(writer, t);
  if (step == nullptr) return;
  ++step->progress;
  step->last_progress = t;
}

bool StepTable::OnFact(const SchedulerFact& fact, const WallClock& clock) {
  if (!IsStepId(fact.step_id)) return false;
  StepSeen& step = FindOrAdd(fact.step_id);
  // Of an earlier run of the job, whose steps had the same numbers.
  const std::optional<Timestamp> happened = clock.At(fact.wall_ns);
  if (happened && step.begin.ns != 0 && *happened + kWholeSecond < step.begin) return false;
  const std::string value = OneLine(fact.value);
  step.origin = OneLine(fact.origin);
  if (fact.field == "name") step.name = value;
  if (fact.field == "exit") step.exit = value;
  if (fact.field == "nodes") step.nodes = value;
  if (fact.field != "state") return false;
  const bool ended = !SchedulerStateGoesOn(value) && step.state != value;
  // An answer that was overtaken by another.
  if (step.told() && SchedulerStateGoesOn(value)) return false;
  step.state = value;
  if (ended) step.told_end = happened.value_or(clock.now);
  return ended;
}

const StepSeen* StepTable::Training() const {
  const StepSeen* newest = nullptr;
  for (const StepSeen& step : steps_) {
    if (step.progress > 0 && (newest == nullptr || step.last_progress > newest->last_progress))
      newest = &step;
  }
  return newest;
}

bool StepTable::IsAfter(const StepSeen& step, const StepSeen& training) const {
  const Timestamp over = training.ended_at();
  if (&step == &training || step.is_batch()) return false;
  return step.begin.ns != 0 ? step.begin >= over : step.told_end > over;
}

const StepSeen* StepTable::FinishedTraining() const {
  const StepSeen* const training = Training();
  if (training == nullptr || !training->ended_well() || training->ended_at().ns == 0)
    return nullptr;
  const bool again = std::any_of(steps_.begin(), steps_.end(), [&](const StepSeen& step) {
    return IsAfter(step, *training) && !step.program.empty() && step.program == training->program;
  });
  return again ? nullptr : training;
}

const StepSeen* StepTable::FailedTraining() const {
  const StepSeen* const training = Training();
  if (training == nullptr || training->is_batch() || !training->ended_badly()) return nullptr;
  const bool mended = std::any_of(steps_.begin(), steps_.end(), [&](const StepSeen& step) {
    return IsAfter(step, *training) && step.ended_well() && step.program == training->program;
  });
  return mended ? nullptr : training;
}

const StepSeen* StepTable::FailedAfter(const StepSeen& training) const {
  const auto found = std::find_if(steps_.begin(), steps_.end(), [&](const StepSeen& step) {
    return IsAfter(step, training) && step.ended_badly();
  });
  return found == steps_.end() ? nullptr : &*found;
}

}  // namespace rankscope::windows
