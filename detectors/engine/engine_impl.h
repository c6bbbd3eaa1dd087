// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine knows, and how each kind of observation changes it: the engine's own, for
// engine.cc and the files beside it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/engine/engine.h"
#include "detectors/engine/engine_job.h"
#include "detectors/engine/job_table.h"
#include "detectors/windows/hearing.h"
#include "detectors/windows/kernel_log_spans.h"

namespace rankscope::engine {

// Of an observation's time, and of clocks.
bool Plausible(int64_t ns);

struct Engine::Impl {
  Impl(const Config& its_config, std::string its_node)
      : config(its_config),
        node(std::move(its_node)),
        table(config.max_jobs, node, [this](const std::string& id) { processes.ForgetJob(id); }) {}

  const Config config;
  const std::string node;
  attribution::Attribution processes;
  JobTable table;
  JobTable::Map& jobs = table.all();
  windows::KernelLogSpans kernel_log;
  std::vector<SourceState> sources;  // by id
  std::string boot_id;
  int64_t wall_offset_ns = 0;
  double clock_uncertainty_s = 0;
  Timestamp last_tick;
  Timestamp noted_late;  // not saved: a gap that is noted twice is one
  Counters counters;

  Job* FindJob(std::string_view id) { return table.Find(id); }
  // Of a job that has been judged.
  JobView View(const Job& job) const;

  // The node may have been booted while the job rested.
  Job* Wake(std::string_view id, Timestamp t);
  Job* Booted(Job* job) const;
  Job* FindOrAddJob(const std::string& id, int64_t uid, Timestamp t);

  // Whose the job is: what its cgroup says goes before what a process of it is.
  int64_t OwnerOf(const std::string& job_id, int64_t otherwise) const;
  int64_t OwnerOf(const attribution::ProcessInfo* process) const;

  // From `begin` on nothing was observed. Where it was stopped is seen at the tick that comes late.
  void NoteUnheard(Timestamp begin, Timestamp end, windows::UnheardWhy why);
  void NoteMissedTicks(Timestamp now);
  // The same, before what comes first after a gap is judged by the time since what came before it.
  void NoteLate(const Observation& observation);
  void On(const Epoch& epoch, const Observation& observation);
  void On(const rankscope::Tick&, const Observation&) {}  // the driver calls Engine::Tick
  void On(const std::monostate&, const Observation&) { ++counters.malformed; }

  void On(const SourceState& state, const Observation& observation);
  void NoteSource(const SourceState* before, const SourceState& now, Timestamp t);
  void On(const RunMark& mark, const Observation& observation);
  void FlushReaders(Job& job, Timestamp t);
  void On(const ProcessStart& start, const Observation& observation);
  void On(const ProcessExit& exit, const Observation& observation);
  void On(const SignalSent& signal, const Observation& observation);
  void On(const LogLine& line, const Observation& observation);
  void On(const SampleBatch& batch, const Observation& observation);

  // The process of a job that had this number until a moment ago: the driver may tell of an error
  // after the process that made it has ended.
  const attribution::ProcessInfo* JustEnded(int32_t pid, Timestamp t) const;
  void On(const KernelEvent& event, const Observation& observation);

  // What the reader of a stream made of it, with the rank whose worker it speaks of.
  void Take(const logs::Record& record, uint32_t stream, const LogLine* line, Job& job,
            Timestamp t) const;
  // A process computes: it may be a rank that nobody has numbered.
  void NoteComputing(const ProcessKey& key, Timestamp t);
  // Who computes on a card matters to every job that does.
  void OnGpu(const Event& event, const attribution::ProcessInfo* process, Timestamp t);

  // Who has which card is no record of how a job went.
  void OnGpuMapping(const SchedulerFact& fact, Timestamp t);
  void On(const SchedulerFact& fact, const Observation& observation);
  void On(const SchedulerRecord& record, const Observation& observation);
  static void NoteSchedulerState(Job& job, Timestamp t);
  void On(const Event& event, const Observation& observation);
  void On(const EngineState&, const Observation&) {}  // the driver decides whether to restore
};

}  // namespace rankscope::engine
