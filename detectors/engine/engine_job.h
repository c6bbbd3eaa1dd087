// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine keeps of one job, and what of the world may be judged of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/engine/judge.h"
#include "detectors/features/job_features.h"
#include "detectors/logs/reader.h"
#include "detectors/windows/job_window.h"

namespace rankscope::engine {

// Slurm is asked once when an attempt has begun and once when one has ended badly, and on the job's
// first node only: a controller has thousands of nodes.
struct SchedulerQuestions {
  bool first_node = false;  // of a Slurm job: this is the first of its nodes
  int32_t asked_begin = 0;  // the attempt of which Slurm was asked how it began, and how it ended
  int32_t asked_end = 0;
  bool asked_parents = false;
  bool scheduled = false;    // Slurm has started it
  int32_t told_attempt = 0;  // the newest attempt whose end Slurm has told
  Timestamp told_end;        // and when it did

  void Ask(const std::string& job_id, int32_t attempt, bool live, bool ended_badly, Timestamp now,
           std::vector<Request>& requests);
  // What is left of the jobs that this one waited for, or of itself where it was begun anew and the
  // runs before it were not seen here; once.
  void AskParents(const windows::JobWindow& window, Timestamp now, std::vector<Request>& requests);

  template <class A>
  void Fields(A& a) {
    a(first_node, asked_begin, asked_end, asked_parents, scheduled, told_attempt, told_end);
  }
};

// The files that a source follows for the job: what its processes wrote last is read some time
// after they have ended.
struct FollowedOutput {
  bool open = false;    // not all of it is read, or more may come
  bool unread = false;  // it was given up before its end was reached
  Timestamp closed;     // when it was no longer open; 0 = nothing was followed

  // False: it tells something else of what was read.
  bool OnEvent(const Event& event, Timestamp t);
  // Whoever followed it is gone.
  void OnLeft(Timestamp t);

  template <class A>
  void Fields(A& a) {
    a(open, unread, closed);
  }
};

struct Job {
  int64_t uid = -1;  // of its owner; -1 = not known
  windows::JobWindow window;
  std::map<uint32_t, logs::Reader> readers;  // by stream
  bool open_text = false;                    // lines came since the readers were flushed
  Judge judge;
  bool dirty = true;
  bool gpu_seen = false;    // a process of it holds a GPU device
  bool gpu_absent = false;  // processes were looked at, and hold none
  std::string record;       // the newest authoritative one since the last evaluation
  Timestamp judged;         // at what tick
  std::string why_fewer;    // jobs are watched than configured, as of then; empty = as many
  SchedulerQuestions scheduler;
  FollowedOutput output;

  // Its processes have ended, and what they wrote last is not all read.
  bool AwaitsOutput() const { return output.open && window.processes_alive() == 0; }
  // An observation that may change a verdict that is final.
  void Touch(const Observation& observation);
};

// Who speaks: the rank, or the rank that a worker belongs to.
windows::Speaker SpeakerOf(const attribution::ProcessInfo& process);

// For Engine::Explain. `job`: the process's, null where it is not watched.
std::string ExplainProcess(const attribution::ProcessInfo& process, const Job* job);

// The job as bytes; exact only for the same build.
std::string SaveJob(Job& job);
// False where the bytes are damaged.
bool LoadJob(std::string_view bytes, Job& job);

// Whether a scheduler that answers has started the job, and will tell how it ended.
bool SchedulerMayTell(const Job& job, const std::vector<SourceState>& sources);

// Which stores say something of this job; `sources`: the newest state of each.
std::array<Availability, features::kStores> StoresOf(const Job& job,
                                                     const std::vector<SourceState>& sources);

}  // namespace rankscope::engine
