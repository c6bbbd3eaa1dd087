// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The engine: observations in, one verdict per job and attempt out. The only place with memory
// across ticks (hold, clear, finality, revisions). Single writer: everything here is called on the
// loop thread. Knows no clock: `now` is handed in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/engine/job_view.h"
#include "detectors/model/job_summary.h"
#include "detectors/model/observation.h"
#include "detectors/model/sink.h"

namespace rankscope::engine {

// The families' knobs and the engine's budgets; the defaults are the product's.
struct Config {
  Duration hang_floor = Seconds(60);  // C2: no verdict of a hang before this
  Duration rendezvous_suspect = Seconds(120);
  Duration rendezvous_fire = Seconds(300);
  Duration final_after_end = Seconds(2);  // streams drained and this long after the last process
  // The same where a scheduler can still tell how the job ended, or begin it anew, and has not.
  Duration final_after_scheduler = Seconds(15);
  Duration forget_after_end = Seconds(600);  // a finished job's state leaves memory
  int32_t max_jobs = 256;

  // A verdict is final this long after the end at the latest, streams that stay open apart.
  Duration LongestEnd() const { return std::max(final_after_end, final_after_scheduler); }
};

// What the engine asks of the world; executed by workers, answered by observations. Replay ignores
// them.
struct Request {
  enum class What : uint8_t { kSchedulerBegin, kSchedulerEnd, kJobSummary };

  What what = What::kSchedulerBegin;
  std::string job_id;
  Timestamp deadline;
  std::string other{};  // kJobSummary: the job that this one may go on from, or this one itself
};

struct Output {
  std::vector<std::string> changed;  // jobs whose verdict document changed
  std::vector<std::string> renewed;  // jobs of which something else is to be shown now
  std::vector<std::string> ended;    // jobs that left memory
  std::vector<std::string> shed;     // the same before their end: others needed the place
  std::vector<Request> requests;
};

class Engine final : public Sink {
 public:
  explicit Engine(Config config = {}, std::string node = {});
  ~Engine() override;

  void Accept(const Observation& observation) override;

  // Evaluates the jobs that changed since the last tick. The driver records the same instant as a
  // Tick observation.
  Output Tick(Timestamp now);

  // All jobs that have a verdict, by job id: those that are watched, those whose state is packed
  // because they ended a while ago, and those that are not watched.
  std::vector<JobView> Jobs() const;
  size_t CountJobs() const;  // after a tick: how many Jobs() are
  std::optional<JobView> Find(std::string_view job_id) const;
  // What is left of a job for the one that goes on from it; nullopt: it is not known here.
  std::optional<JobSummary> Summarize(std::string_view job_id, Timestamp now) const;

  // How a process came to its job and rank, as text lines; empty when unknown. For `rankscope
  // explain`.
  std::string Explain(int32_t pid) const;

  // Counters of the engine itself, for metrics.
  struct Counters {
    int64_t observations = 0;
    int64_t malformed = 0;
    int64_t unattributed_lines = 0;
    int64_t jobs_dropped = 0;  // not taken, or shed before their end
  };
  Counters counters() const;

  // Whether observations of this job are kept; false of one that was not taken, or shed.
  bool Watches(std::string_view job_id) const;
  // How many jobs may be here from now on, where memory allows fewer than the configuration; those
  // that are too many leave at the next tick. `why` goes into the documents of those.
  void SetMaxJobs(int32_t most, std::string why);
  int32_t max_jobs() const;  // that may be here now
  size_t jobs() const;       // that are watched and whose state is not packed

  // Restorable state of all jobs; exact only for the same build.
  std::string Save() const;
  bool Restore(std::string_view bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rankscope::engine
