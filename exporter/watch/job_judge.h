// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is seen of the jobs from outside, Slurm's records and the text of their output files, as
// observations for one engine: the same engine and the same observations as those of a daemon that
// reads output files and asks Slurm. What was written before anybody looked is told as past text.
// Single writer; knows no clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/engine/engine.h"
#include "detectors/logs/text/assembler.h"
#include "detectors/model/observation.h"

namespace rankscope::watch {

// One file as it is, from its beginning to its end; another one in its place is another stream.
struct Stream {
  uint32_t number = 0;
  std::string path;
  logs::LineAssembler lines;
};

class JobJudge {
 public:
  // Jobs whose text is followed at once; each holds some 200 kB.
  static constexpr int32_t kMaxJobs = 256;

  JobJudge();

  void SetClock(int64_t wall_offset_ns, Timestamp now);
  void TellSlurm(bool answers, const std::string& why, Timestamp now);

  // A run of the job began at `start`. `restart`: how often Slurm had put it back by then.
  void Begin(const std::string& job_id, const std::string& output, std::optional<uint32_t> uid,
             int32_t restart, Timestamp start);
  // Up to `end` the stream was written before it was found, the last of it at `written`.
  void TellPast(const std::string& job_id, const Stream& stream, int64_t end, Timestamp written,
                Timestamp t);
  void Feed(const std::string& job_id, Stream& stream, std::string_view bytes, Timestamp t);
  // The next `bytes` of it are passed over.
  void Skip(const std::string& job_id, Stream& stream, int64_t bytes, Timestamp t);
  // No more comes of it.
  void Close(const std::string& job_id, Stream& stream, Timestamp t);
  void Tell(SchedulerRecord record, Timestamp t);
  void Tell(SchedulerFact fact, Timestamp t);
  // The run is over. `wait_status`: of its script, where it ended by itself.
  void End(const std::string& job_id, std::optional<int32_t> wait_status, Timestamp t);
  void Forget(const std::string& job_id, Timestamp t);

  void Tick(Timestamp now) { engine_.Tick(now); }
  // Null before its first tick; valid until the next one.
  const proto::Verdict* Find(const std::string& job_id) const;
  std::optional<JobSummary> Summarize(const std::string& job_id, Timestamp now) const {
    return engine_.Summarize(job_id, now);
  }

 private:
  template <typename Kind>
  void Give(Kind kind, Timestamp t) {
    Observation observation;
    observation.t = t;
    observation.seq = ++seq_;
    observation.kind = std::move(kind);
    engine_.Accept(observation);
  }
  void GiveLine(const std::string& job_id, const Stream& stream, const logs::AssembledLine& line,
                Timestamp t);

  engine::Engine engine_;
  Observation line_;  // one for all lines
  std::string masked_;
  int64_t seq_ = 0;
};

}  // namespace rankscope::watch
