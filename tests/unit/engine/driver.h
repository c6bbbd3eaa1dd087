// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Writes a stream of observations by hand and plays it to an engine, whole or in parts: what tests
// of the engine say in a line each. Times are seconds; ticks come once a second. Single-threaded.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "detectors/document/verdict_json.h"
#include "detectors/engine/engine.h"
#include "detectors/model/observation.h"
#include "detectors/status/describe_job.h"
#include "tests/unit/engine/answers.h"

namespace rankscope::testing {

inline constexpr double kStart = 1000;  // second 0 of a tape on the monotonic clock

inline Timestamp AtSecond(double second) {
  return {static_cast<int64_t>((kStart + second) * 1e9)};
}

// Observations that own what they borrow.
class Tape {
 public:
  explicit Tape(std::string job_id = "j1") : job_id_(std::move(job_id)) {
    Add(0, Epoch{1'750'000'000'000'000'000, 1000, "boot-1"});
  }

  void Add(double second, decltype(Observation::kind) kind) {
    Observation observation;
    observation.t = AtSecond(second);
    observation.kind = std::move(kind);
    Add(observation);
  }
  void Add(const Observation& observation) {
    Entry& entry = entries_.emplace_back();
    entry.observation = observation;
    if (auto* line = std::get_if<LogLine>(&entry.observation.kind)) {
      entry.text = line->text;
      entry.stream_name = line->stream_name;
      line->text = entry.text;
      line->stream_name = entry.stream_name;
    }
  }

  void Begin(double second, std::vector<std::string> argv = {"python", "train.py"},
             int32_t world_size = 1, ProcessKey root = {}) {
    RunMark mark = Mark(RunMark::What::kBegin);
    mark.argv = std::move(argv);
    mark.world_size = world_size;
    mark.root = root;
    Add(second, std::move(mark));
  }
  void End(double second, int32_t wait_status) {
    RunMark mark = Mark(RunMark::What::kEnd);
    mark.status_known = true;
    mark.wait_status = wait_status;
    Add(second, std::move(mark));
  }
  void Closed(double second) { Add(second, Mark(RunMark::What::kStreamsClosed)); }
  void Lost(double second) { Add(second, Mark(RunMark::What::kLost)); }

  // Every line of `text`, at one instant.
  void Say(double second, const std::string& text, uint32_t stream = 1) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string one = text.substr(begin, end - begin);
      LogLine line;
      line.stream = stream;
      const std::string name = stream == 1 ? "stdout" : stream == 2 ? "stderr" : "log";
      line.stream_name = name;
      line.job_id = job_id_;
      line.offset = offsets_[stream];
      line.text = one;
      line.end = LineEnd::kLf;
      offsets_[stream] += static_cast<int64_t>(one.size()) + 1;
      Add(second, std::move(line));
      begin = end + 1;
    }
  }
  // What is said from here on is a new log's, as another wrapper's is.
  void RewindText() { offsets_.clear(); }
  // Training records in a known dialect, `every` seconds apart; the loss falls.
  void Train(double second, int from, int to, double every = 1) {
    for (int step = from; step <= to; ++step) {
      char text[96];
      std::snprintf(text, sizeof text, "step %d loss %.4f lr 0.01 step_time 0.080s", step,
                    0.5 + 3.0 / (1 + 0.1 * step) + 0.01 * ((step * 7919) % 13 - 6));
      Say(second, text);
      second += every;
    }
  }
  void Start(double second, ProcessKey key, ProcessKey parent, std::vector<KeyValue> env,
             std::vector<std::string> argv = {"python", "train.py"}) {
    ProcessStart start;
    start.key = key;
    start.parent = parent;
    start.comm = "python";
    start.argv = std::move(argv);
    start.env = std::move(env);
    start.complete = true;
    Add(second, std::move(start));
  }
  void Exit(double second, ProcessKey key, int32_t wait_status, bool known = true) {
    Add(second, ProcessExit{key, wait_status, known, false});
  }
  // A rank of `world` on this node, named by torchrun's variables.
  void StartRank(double second, ProcessKey key, ProcessKey parent, int rank, int world,
                 int restart = 0) {
    Start(second, key, parent,
          {{"RANK", std::to_string(rank)},
           {"LOCAL_RANK", std::to_string(rank)},
           {"WORLD_SIZE", std::to_string(world)},
           {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)}});
  }
  void State(double second, std::string field, std::string value) {
    SchedulerFact fact;
    fact.job_id = job_id_;
    fact.field = std::move(field);
    fact.value = std::move(value);
    fact.origin = "sacct";
    Add(second, std::move(fact));
  }

  // By time, with a tick at every whole second up to `until`; equal times keep their order and the
  // tick comes last.
  void Finish(double until) {
    for (double second = 1; second <= until; ++second) Add(second, Tick{});
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.observation.t < b.observation.t;
    });
    for (Entry& entry : entries_) {  // short strings moved with their entries
      if (auto* line = std::get_if<LogLine>(&entry.observation.kind)) {
        line->text = entry.text;
        line->stream_name = entry.stream_name;
      }
    }
  }

  size_t size() const { return entries_.size(); }
  const Observation& operator[](size_t i) const { return entries_[i].observation; }
  const std::string& job_id() const { return job_id_; }

 private:
  struct Entry {
    Observation observation;
    std::string text;
    std::string stream_name;
  };

  RunMark Mark(RunMark::What what) const {
    RunMark mark;
    mark.job_id = job_id_;
    mark.what = what;
    return mark;
  }

  std::string job_id_;
  std::deque<Entry> entries_;
  std::map<uint32_t, int64_t> offsets_;
};

// Plays entries [begin, end).
inline void Play(const Tape& tape, engine::Engine& engine, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (std::holds_alternative<Tick>(tape[i].kind)) {
      engine.Tick(tape[i].t);
    } else {
      engine.Accept(tape[i]);
    }
  }
}

// Plays what lies before `second` and has not been played; returns where it stopped.
inline size_t PlayUntil(const Tape& tape, engine::Engine& engine, size_t begin, double second) {
  size_t end = begin;
  while (end < tape.size() && tape[end].t <= AtSecond(second)) ++end;
  Play(tape, engine, begin, end);
  return end;
}

// The verdict of the tape's job after all of it; a default one when the engine knows no such job.
inline proto::Verdict JudgeTape(const Tape& tape, engine::Config config = {}) {
  engine::Engine engine(config, "n1");
  Play(tape, engine, 0, tape.size());
  return VerdictOf(engine, tape.job_id());
}

// All that the engine answers, as text.
inline std::string AnswersOf(const engine::Engine& engine) {
  std::string text;
  for (const engine::JobView& view : engine.Jobs()) {
    text += VerdictToJson(*view.verdict) + "\n";
    // The state of one that has ended may be packed in one engine and not yet in the other.
    if (!view.running) continue;
    const JobStatus job = status::DescribeJob(view);
    text += std::to_string(job.training.records) + " records " + std::to_string(job.incidents) +
            " incidents\n";
  }
  return text;
}

constexpr int32_t Exited(int code) {
  return code << 8;
}
constexpr int32_t Killed(int signal) {
  return signal;
}

}  // namespace rankscope::testing
