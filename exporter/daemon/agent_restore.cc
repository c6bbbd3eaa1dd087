// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the agent does with what the daemon before it left behind: recordings, and wrappers that may
// come back.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "exporter/daemon/agent.h"
#include "exporter/daemon/sources.h"
#include "exporter/output/heard_files.h"
#include "exporter/processes/process_table.h"
#include "exporter/replay/player.h"
#include "exporter/replay/reading.h"
#include "exporter/run/clock.h"

namespace rankscope::exporter {
namespace {

// A wrapper looks for its daemon each second.
constexpr Duration kWrapperTimeout = Seconds(10);
// Streams that are heard in the kernel have numbers below those of files.
constexpr uint32_t kHeardStreamsEnd = 1 << 24;
// Of a user's files in his run's folder.
constexpr Duration kFolderTimeout = Seconds(5);

}  // namespace

void Agent::Restore() {
  replay::Player player({[this](const Observation& observation) { engine_.Accept(observation); },
                         [this](Timestamp now) { Handle(engine_.Tick(now)); }});
  player.Begin(true);
  const auto judge_alone = [this](const std::string& directory) {
    engine::Engine engine(EngineConfig(config_), node_);
    replay::Player alone({[&](const Observation& observation) { engine.Accept(observation); },
                          [&](Timestamp now) { static_cast<void>(engine.Tick(now)); }});
    alone.Begin(true);
    replay::ReadCallbacks callbacks;
    callbacks.observation = [&](const Observation& observation) { alone.Observe(observation); };
    static_cast<void>(replay::ReadRecording(directory, callbacks));
  };
  const auto deliver = [&](const Observation& observation) {
    if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
      if (mark->what == RunMark::What::kBegin) {
        awaited_[mark->job_id] = {mark->job_id, mark->root, mark->log, mark->uid.value_or(0)};
        if (mark->uid) holders_[mark->job_id] = *mark->uid;
        processes_->NoteWrapped(mark->root);
      }
      if (mark->what == RunMark::What::kEnd || mark->what == RunMark::What::kLost) {
        awaited_.erase(mark->job_id);
      }
    }
    if (const auto* line = std::get_if<LogLine>(&observation.kind)) {
      files_heard_->Note(*line, observation.t);
      if (line->stream < kHeardStreamsEnd) streams_heard_ = std::max(streams_heard_, line->stream);
    }
    player.Observe(observation);
  };
  recordings_.Restore(deliver, judge_alone);
  if (player.last_tick().ns != 0) NoteAway(player.last_tick());
  if (!awaited_.empty()) loop_.After(kWrapperTimeout, [this] { GiveUpWrappers(); });
  for (auto& [job_id, run] : awaited_) ReadFolder(run, false);
  // What the recordings believe to be alive is looked at again: the next scan tells who is gone.
  for (const attribution::ProcessInfo& process : recordings_.LiveProcesses()) {
    collectors::TrackedProcess tracked;
    tracked.key = process.key;
    tracked.parent = process.parent;
    tracked.uid = process.uid;
    tracked.job_id = process.job_id;
    tracked.wrapped = process.wrapped;
    processes_->Add(std::move(tracked));
  }
}

// What befell the jobs between the last tick that is on disk and now was seen by nobody. Recorded,
// so that a replay knows it, too.
void Agent::NoteAway(Timestamp since) {
  Epoch epoch = run::ReadEpoch();
  epoch.away_since = since;
  const Observation observation = OfAgent(std::move(epoch));
  recordings_.Accept(observation);
  recordings_.Flush();
  engine_.Accept(observation);
}

// A wrapper that does not come back died with its daemon, or ended in between: what it still had to
// say is in its recording, or is not to be had.
void Agent::GiveUpWrappers() {
  for (const auto& [job_id, run] : std::map(awaited_)) ReadFolder(run, true);
}

// What the recording in the run's own folder holds beyond what was heard. `last`: the wrapper does
// not come any more; else only a recording that is complete is taken.
void Agent::ReadFolder(LeftRun run, bool last) {
  const attribution::ProcessInfo* root = recordings_.Find(run.root);
  const std::optional<int64_t> seq = recordings_.WrapperSeq(run.job_id);
  if (root != nullptr && run.uid == 0) run.uid = root->uid;
  const auto lose = [this, job_id = run.job_id, last] {
    if (last) LoseWrapper(job_id);
  };
  // Of several wrappers of one job nobody knows any more which of them has said what.
  if (root == nullptr || !seq) return lose();
  run.after_seq = *seq;
  const bool submitted = folders_.Submit(
      run.uid,
      [this, run, last]() -> std::function<void()> {
        auto rest = std::make_shared<LeftRest>(ReadLeftRun(run));
        return [this, run, rest, last] { TakeRest(run, *rest, last); };
      },
      kFolderTimeout, lose);
  if (!submitted) lose();
}

void Agent::TakeRest(const LeftRun& run, LeftRest& rest, bool last) {
  if (!awaited_.contains(run.job_id)) return;  // it has come back, or was given up
  if (!rest.ended && !last) return;
  if (!rest.observations.empty()) {
    log_.Info("a run ended while the daemon was down: its directory had the rest",
              {{"job_id", run.job_id}, {"observations", std::to_string(rest.observations.size())}});
    recordings_.NoteWrapperSeq(run.job_id, rest.last_seq);
  }
  for (Observation& observation : rest.observations) {
    observation.t = std::min(observation.t, loop_.Now());
    observation.source = kRunSource;
    observation.node = node_;
    Pass(observation);
  }
  if (!rest.ended) return LoseWrapper(run.job_id);
  awaited_.erase(run.job_id);
}

void Agent::LoseWrapper(const std::string& job_id) {
  const auto found = awaited_.find(job_id);
  if (found == awaited_.end()) return;
  log_.Warn("`rankscope run` did not reconnect: later output is lost", {{"job_id", job_id}});
  RunMark lost;
  lost.job_id = job_id;
  lost.what = RunMark::What::kLost;
  lost.root = found->second.root;
  awaited_.erase(found);
  Pass(OfAgent(lost));
  const collectors::TrackedProcess* tracked = processes_->Find(lost.root.pid);
  if (tracked != nullptr && tracked->key == lost.root) return;  // its end will be seen
  ProcessExit gone;
  gone.key = lost.root;
  Pass(OfAgent(gone));
}

}  // namespace rankscope::exporter
