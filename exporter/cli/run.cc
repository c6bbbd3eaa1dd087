// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope run`: the wrapper with a recorder and an engine behind it. The engine sees what the
// recorder keeps, through the same player as `replay`, so both come to the same verdict.
#include <malloc.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "detectors/document/verdict_json.h"
#include "detectors/engine/engine.h"
#include "exporter/cli/commands.h"
#include "exporter/cli/notice.h"
#include "exporter/notify/describe.h"
#include "exporter/replay/player.h"
#include "exporter/replay/recorder.h"
#include "exporter/run/clock.h"
#include "exporter/run/options.h"
#include "exporter/run/process_facts.h"
#include "exporter/run/wrapper.h"
#include "exporter/version.h"

namespace rankscope::cli {
namespace {

// A verdict becomes final this many ticks after the configured wait, at the latest.
constexpr int kMoreTicks = 16;

// What judging an empty log takes, in one piece.
constexpr int kHeapStep = 1 << 20;

// Names a run that Slurm does not, and a message; a clash costs a run a folder of its own (".2"),
// nothing else.
template <class Number>
Number RandomName() {
  Number random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = static_cast<Number>(run::MonotonicNow().ns);
  return random;
}

class RunJudge final : public Sink {
 public:
  RunJudge(int recording_fd, std::string job_id, Notice& notice)
      : job_id_(std::move(job_id)),
        notice_(notice),
        node_(run::ReadHostName()),
        engine_(config_, node_),
        player_({[this](const Observation& observation) { engine_.Accept(observation); },
                 [this](Timestamp now) { engine_.Tick(now); }}),
        recorder_(recording_fd, {recording::kVersion, kVersionText, node_, run::ReadBootId()},
                  {nullptr, [this] {
                     return EngineState{kVersionText, engine_.Save()};
                   }}) {
    // The first verdict needs protobuf's descriptors, a third of a millisecond to build: now, while
    // the command runs, and not when somebody waits for the end.
    proto::Verdict().GetReflection();
    player_.Begin(true);
    // A recorder that cannot write tries again by itself, and Judge says that the recording is not
    // exact.
    [[maybe_unused]] const Status opened = recorder_.Open();
  }

  void Accept(const Observation& observation) override {
    recorder_.Accept(observation);
    player_.Observe(observation);
    const LogLine* const line = std::get_if<LogLine>(&observation.kind);
    if (line != nullptr && notice_.wanted()) notice_.Hear(*line);
  }

  void Flush() { recorder_.Flush(); }

  run::Judgement Judge() {
    player_.CatchUp();
    const int ticks = static_cast<int>(config_.LongestEnd().seconds()) + kMoreTicks;
    for (int i = 0; i < ticks && !Final(); ++i) player_.TickOn();
    const std::optional<engine::JobView> job = engine_.Find(job_id_);
    if (!job) return {};
    proto::Verdict verdict = *job->verdict;
    if (!recorder_.exact()) verdict.mutable_data_quality()->set_exact(false);
    return {VerdictToJson(verdict) + "\n", VerdictToText(verdict, Detail::kShort), LeaveNotice()};
  }

 private:
  // What is done about notifications, last of all; empty: nothing.
  std::function<std::string(const run::Artifacts&)> LeaveNotice() const {
    if (!notice_.complaint().empty())
      return [this](const run::Artifacts&) { return notice_.complaint(); };
    if (!notice_.wanted()) return {};
    std::optional<Notice::Message> message =
        notice_.MessageOf(engine_, job_id_, node_, run::MonotonicNow(), run::WallNowNs());
    if (!message) return {};
    return [this, message = *std::move(message)](const run::Artifacts& artifacts) mutable {
      exporter::notify::AddFiles(artifacts.archive, artifacts.kept, artifacts.left,
                                 *message.mutable_notification());
      return notice_.Leave(message, RandomName<uint64_t>());
    };
  }

  bool Final() const {
    const std::optional<engine::JobView> job = engine_.Find(job_id_);
    return !job || job->verdict->state() == proto::FINAL;
  }

  std::string job_id_;
  Notice& notice_;
  std::string node_;
  engine::Config config_;
  engine::Engine engine_;
  replay::Player player_;
  replay::Recorder recorder_;
};

run::Consumer MakeJudge(int recording_fd, const std::string& job_id, Notice& notice) {
  auto judge = std::make_unique<RunJudge>(recording_fd, job_id, notice);
  RunJudge* const self = judge.get();
  run::Consumer consumer;
  consumer.sink = std::move(judge);
  consumer.flush = [self] { self->Flush(); };
  consumer.judge = [self] { return self->Judge(); };
  return consumer;
}

}  // namespace

int RunCommand(int /*argc*/, char** argv) {
  Result<run::Arguments> arguments =
      run::ParseArguments(argv, environ, run::ReadOuterUser(), RandomName<uint32_t>());
  if (!arguments) {
    std::fprintf(stderr, "rankscope run: %s\n", arguments.error().c_str());
    return run::kRefused;
  }
  if (arguments->help) {
    std::fputs(run::kUsage, stdout);
    return 0;
  }
  // One heap for the four threads, which hardly allocate at once: an arena for each, mapped and
  // grown a page at a time, costs more than the lock.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TOP_PAD, kHeapStep);
  run::Options& options = arguments->options;
  options.tool_version = kVersionText;
  Notice notice(options.notify, options.environment);
  return run::Wrap(options, [&options, &notice](int recording_fd) {
    return MakeJudge(recording_fd, options.job_id, notice);
  });
}

}  // namespace rankscope::cli
