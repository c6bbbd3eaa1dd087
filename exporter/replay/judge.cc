// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/judge.h"

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "exporter/replay/player.h"

namespace rankscope::replay {

namespace {

// Past the configured wait for finality: the longest that a verdict may wait for the scheduler's or
// the peers' last word.
constexpr int kMoreTicks = 16;

class Judge {
 public:
  explicit Judge(const JudgeOptions& options)
      : options_(options),
        player_({[this](const Observation& observation) { engine().Accept(observation); },
                 [this](Timestamp now) { Tick(now); }}) {}

  Judgement Run(const std::string& path) {
    ReadCallbacks callbacks;
    callbacks.header = [this](const recording::Header& header) { node_ = header.node; };
    callbacks.begin = [this](bool ticks_recorded) { player_.Begin(ticks_recorded); };
    callbacks.observation = [this](const Observation& observation) { Observe(observation); };
    callbacks.restore = [this](const EngineState& state) { return Restore(state); };
    Judgement judgement;
    judgement.read = ReadRecording(path, callbacks);
    if (!judgement.read.readable) return judgement;
    Settle();
    for (const engine::JobView& job : engine().Jobs())
      verdicts_[std::string(job.job_id)] = *job.verdict;
    judgement.document.set_schema(1);
    judgement.document.set_node(node_);
    for (auto& [job_id, verdict] : verdicts_) {
      AddQuality(judgement.read, *verdict.mutable_data_quality());
      *judgement.document.add_verdicts() = std::move(verdict);
    }
    return judgement;
  }

 private:
  engine::Engine& engine() {
    if (!engine_) engine_ = std::make_unique<engine::Engine>(options_.config, node_);
    return *engine_;
  }

  bool Restore(const EngineState& state) {
    auto restored = std::make_unique<engine::Engine>(options_.config, node_);
    if (!restored->Restore(state.blob)) return false;
    engine_ = std::move(restored);
    return true;
  }

  void Observe(const Observation& observation) {
    if (options_.pace && latest_ && observation.t > *latest_)
      options_.pace(observation.t - *latest_);
    if (!latest_ || observation.t > *latest_) latest_ = observation.t;
    player_.Observe(observation);
  }

  void Tick(Timestamp now) {
    for (const std::string& job_id : engine().Tick(now).changed) {
      const std::optional<engine::JobView> job = engine().Find(job_id);
      if (!job) continue;
      proto::Verdict& known = verdicts_[job_id];
      const auto shown = [](const proto::Verdict& v) {
        return std::make_tuple(v.code(), v.family(), v.confidence(), v.state());
      };
      const bool differs = shown(known) != shown(*job->verdict);
      known = *job->verdict;
      if (differs && options_.changed) options_.changed(now - player_.start(), known);
    }
  }

  // The recording has ended; a run that has ended too becomes final in the seconds after it.
  void Settle() {
    player_.CatchUp();
    const int ticks = static_cast<int>(options_.config.LongestEnd().seconds()) + kMoreTicks;
    for (int i = 0; i < ticks && !Settled(); ++i) player_.TickOn();
  }

  bool Settled() {
    for (const engine::JobView& job : engine().Jobs()) {
      if (!job.running && job.verdict->state() != proto::FINAL) return false;
    }
    return true;
  }

  static void AddQuality(const ReadResult& read, proto::DataQuality& quality) {
    if (!read.exact) quality.set_exact(false);
    if (read.truncated_at) quality.set_truncated_at(*read.truncated_at);
    for (const std::string& note : read.notes) quality.add_notes("recording: " + note);
  }

  const JudgeOptions& options_;
  Player player_;
  std::string node_;
  std::unique_ptr<engine::Engine> engine_;  // made when the node is known
  std::optional<Timestamp> latest_;
  std::map<std::string, proto::Verdict> verdicts_;
};

}  // namespace

Judgement JudgeRecording(const std::string& path, const JudgeOptions& options) {
  return Judge(options).Run(path);
}

}  // namespace rankscope::replay
