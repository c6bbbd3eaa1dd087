// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine.h"

#include <algorithm>
#include <map>
#include <utility>

#include "detectors/attribution/attribution.h"
#include "detectors/attribution/gpu_environment.h"
#include "detectors/engine_job.h"
#include "detectors/features/gpu_error.h"
#include "detectors/job_table.h"
#include "detectors/logs/kernel_event.h"
#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"
#include "detectors/summarize_job.h"

namespace rankscope::engine {
namespace {

// Python writes a chained traceback in one go; after this much silence what was said is complete.
constexpr Duration kTextPause = Seconds(2);

// Ticks come each second, and a busy machine delays one by two or three. After a longer hole nobody
// was listening.
constexpr Duration kMissedTicks = Seconds(5);

// Most of what is told of an ended job comes within this; then its state is packed up, and unpacked
// for what comes later.
constexpr Duration kRest = Seconds(30);

// No clock shows such times (146 years); within them sums and differences cannot overflow.
constexpr int64_t kMaxTimeNs = int64_t{1} << 62;

bool Plausible(int64_t ns) {
  return ns > -kMaxTimeNs && ns < kMaxTimeNs;
}

}  // namespace

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
  Counters counters;

  Job* FindJob(std::string_view id) { return table.Find(id); }

  // The node may have been booted while the job rested.
  Job* Wake(std::string_view id, Timestamp t) {
    if (Job* job = FindJob(id)) return job;
    return Booted(table.Wake(id, t, wall_offset_ns));
  }

  Job* Booted(Job* job) const {
    if (job != nullptr) job->window.OnBoot(node, boot_id);
    return job;
  }

  Job* FindOrAddJob(const std::string& id, int64_t uid, Timestamp t) {
    if (Job* job = Wake(id, t)) return job;
    return Booted(table.FindOrAdd(id, uid, t, wall_offset_ns));
  }

  // Whose the job is: what its cgroup says goes before what a process of it is.
  int64_t OwnerOf(const std::string& job_id, int64_t otherwise) const {
    const attribution::JobFacts* facts = processes.FindJob(job_id);
    return facts == nullptr ? otherwise : facts->uid;
  }
  int64_t OwnerOf(const attribution::ProcessInfo* process) const {
    return process == nullptr ? kNobody : OwnerOf(process->job_id, process->uid);
  }

  // From `begin` on nothing was observed. Where it was stopped is seen at the tick that comes late.
  void NoteUnheard(Timestamp begin, Timestamp end, windows::UnheardWhy why) {
    for (auto& [id, job] : jobs) {
      if (!job.window.end().ended) job.window.hearing().OnSpan(begin, end, why);
    }
  }

  void NoteMissedTicks(Timestamp now) {
    if (last_tick.ns != 0 && now - last_tick > kMissedTicks)
      NoteUnheard(last_tick, now, windows::UnheardWhy::kStopped);
    last_tick = now;
  }

  void On(const Epoch& epoch, const Observation& observation) {
    if (!Plausible(epoch.wall_offset_ns) || !Plausible(epoch.away_since.ns)) {
      ++counters.malformed;
      return;
    }
    wall_offset_ns = epoch.wall_offset_ns;
    clock_uncertainty_s = static_cast<double>(epoch.uncertainty_ns) * 1e-9;
    if (!epoch.boot_id.empty()) boot_id = epoch.boot_id;
    for (auto& [id, job] : jobs) job.window.OnBoot(node, boot_id);
    if (epoch.away_since.ns == 0) return;
    NoteUnheard(epoch.away_since, observation.t, windows::UnheardWhy::kAway);
    kernel_log.OnAway(epoch.away_since);  // what it held meanwhile is not read again
    last_tick = observation.t;
  }

  void On(const rankscope::Tick&, const Observation&) {}  // the driver calls Engine::Tick
  void On(const std::monostate&, const Observation&) { ++counters.malformed; }

  void On(const SourceState& state, const Observation& observation) {
    kernel_log.OnSource(state, observation.t);
    // It tells all that stands in the files after this; what was taken back meanwhile it does not.
    if (state.name == "job_mapping" && state.state == Availability::kUp) {
      for (auto& [id, job] : jobs) job.window.OnGpuMapping({}, observation.t);
    }
    for (SourceState& known : sources) {
      if (known.source == state.source && known.name == state.name) {
        NoteSource(&known, state, observation.t);
        known = state;
        return;
      }
    }
    constexpr size_t kMaxSources = 64;
    if (sources.size() >= kMaxSources) return;
    NoteSource(nullptr, state, observation.t);
    sources.push_back(state);
  }

  void NoteSource(const SourceState* before, const SourceState& now, Timestamp t) {
    for (auto& [id, job] : jobs) {
      if (!job.window.end().ended) job.window.hearing().OnSource(before, now, t);
    }
  }

  void On(const RunMark& mark, const Observation& observation) {
    if (mark.job_id.empty()) {
      ++counters.malformed;
      return;
    }
    if (mark.what == RunMark::What::kDisowned) {
      if (FindJob(mark.job_id) != nullptr) table.Erase(jobs.find(mark.job_id));
      return;
    }
    if (mark.what == RunMark::What::kBegin) {
      // An id that comes back after its job has ended is another job, unless Slurm has put this one
      // back into the queue since.
      if (Job* old = Wake(mark.job_id, observation.t);
          old != nullptr && old->window.end().ended && old->window.wrapped() &&
          mark.slurm_restart <= old->window.attempt().slurm_restart)
        table.Erase(jobs.find(mark.job_id));
      table.BeginAnew(mark.job_id);
    }
    const int64_t uid = mark.uid ? *mark.uid : OwnerOf(processes.Find(mark.root));
    Job* job = FindOrAddJob(mark.job_id, uid, observation.t);
    if (job == nullptr) {
      if (mark.what != RunMark::What::kBegin) table.EndUnwatched(mark.job_id);
      return;
    }
    job->dirty = true;
    if (uid != kNobody) job->uid = uid;
    if (mark.what == RunMark::What::kBegin) {
      const Attempt& attempt = job->window.attempt();
      if (mark.slurm_restart > attempt.slurm_restart ||
          (attempt.ordinal > 1 && !job->window.wrapped())) {
        // Its streams have the numbers of those that the run before had.
        FlushReaders(*job, observation.t);
        job->readers.clear();
        job->Touch(observation);
      }
      job->window.OnRunBegin(mark, observation.t);
      processes.OnRunBegin(mark, observation.t);
      return;
    }
    if (mark.what == RunMark::What::kStreamsClosed || mark.what == RunMark::What::kLost)
      FlushReaders(*job, observation.t);
    job->window.OnRunEnd(mark, observation.t);
  }

  void FlushReaders(Job& job, Timestamp t) {
    job.open_text = false;
    for (auto& [stream, reader] : job.readers) {
      for (const logs::Record& record : reader.Flush())
        job.window.OnRecord(record, stream, nullptr, t);
    }
  }

  void On(const ProcessStart& start, const Observation& observation) {
    // An exec tells the facts again; the process is not another one.
    const attribution::ProcessInfo* known = processes.Find(start.key);
    const bool again = known != nullptr && known->role != attribution::ProcessRole::kUnknown;
    const std::string job_before = again ? known->job_id : std::string();
    const attribution::ProcessInfo* process = processes.OnStart(start, boot_id, observation.t);
    if (process == nullptr) return;
    const auto withdrawn = processes.TakeWithdrawn();
    // Slurm moves what its daemon has forked into the job's cgroup.
    const bool moved = again && job_before != process->job_id;
    if (Job* left = moved ? FindJob(job_before) : nullptr) {
      left->dirty = true;
      left->window.OnProcessLeft(start.key, observation.t);
    }
    const std::string id = process->job_id;  // where it is not taken the process is forgotten
    const int64_t owner = OwnerOf(process);
    Job* job = FindOrAddJob(id, owner, observation.t);
    if (job == nullptr) return;
    // Slurm's own processes come first, as root; whose job it is the later ones tell.
    const attribution::JobFacts* facts = processes.FindJob(id);
    if (job->uid <= 0 || (facts != nullptr && facts->by_cgroup)) job->uid = owner;
    // The wrapper tells how its run goes; that Slurm has begun the job again is news.
    const bool again_from_queue =
        job->window.end().ended && process->slurm_restart > job->window.attempt().slurm_restart;
    if (job->window.wrapped() && !again_from_queue) {
      job->dirty = true;
    } else {
      job->Touch(observation);
    }
    if (process->node_rank == 0 && !process->step_id.empty()) job->scheduler.first_node = true;
    // Slurm names the node to each task; a step may be known by the cgroup alone.
    if (!process->step_id.empty() || !process->node_name.empty()) job->scheduler.scheduled = true;
    for (const auto& [key, rank] : withdrawn) job->window.WithdrawRank(key, rank);
    if (start.preexisting && !again) job->window.hearing().OnEarlierProcess();
    job->window.OnProcessStart(*process, again && !moved, observation.t);
    job->window.OnArguments(*process, start.argv);
    job->window.OnEnvironment(*process, start.env, observation.t);
    if (!start.env.empty()) {
      const bool contained = start.ns_pids.size() > 1 && start.ns_pids.back() != start.key.pid;
      job->window.OnGpuEnvironment(
          *process, attribution::ReadGpuEnvironment(start.env, contained, start.gpu_minors));
    }
    if (!start.gpu_uuids.empty()) job->gpu_seen = true;
  }

  void On(const ProcessExit& exit, const Observation& observation) {
    const attribution::ProcessInfo* before = processes.Find(exit.key);
    const bool was_alive = before != nullptr && before->alive;
    const attribution::ProcessInfo* process = processes.OnExit(exit, observation.t);
    if (process == nullptr || !was_alive) return;
    Job* job = FindJob(process->job_id);
    if (job == nullptr) return;
    job->dirty = true;
    job->window.OnProcessExit(*process, observation.t);
  }

  void On(const SignalSent& signal, const Observation& observation) {
    const attribution::ProcessInfo* target = processes.Find(signal.target);
    Job* job = target == nullptr ? nullptr : FindJob(target->job_id);
    if (job == nullptr) return;
    job->dirty = true;
    job->window.OnSignal(signal, *target, processes.Find(signal.sender), observation.t);
  }

  void On(const LogLine& line, const Observation& observation) {
    Job* job = nullptr;
    if (!line.job_id.empty() && !table.Rests(line.job_id)) {
      job = FindOrAddJob(line.job_id, OwnerOf(processes.Find(line.writer)), observation.t);
    } else if (const attribution::ProcessInfo* writer = processes.Find(line.writer)) {
      job = FindJob(writer->job_id);
    }
    if (job == nullptr) {
      ++counters.unattributed_lines;
      return;
    }
    job->dirty = true;
    // What the workers of an earlier start left open was theirs.
    if (line.restart > job->window.attempt().elastic_restart) FlushReaders(*job, observation.t);
    job->window.OnLine(line, observation.t);
    job->open_text = true;
    if (job->readers.size() >= windows::JobWindow::kMaxStreams &&
        !job->readers.contains(line.stream))
      return;  // the window has counted it
    for (const logs::Record& record : job->readers[line.stream].Feed(line, observation.t)) {
      job->window.OnRecord(record, line.stream, &line, observation.t);
    }
  }

  void On(const SampleBatch& batch, const Observation& observation) {
    const attribution::ProcessInfo* process = nullptr;
    std::string_view job_id;
    windows::Speaker speaker;
    switch (batch.subject.kind) {
      case Subject::Kind::kRank:
        job_id = batch.subject.rank.job_id;
        speaker.rank = batch.subject.rank.rank;
        break;
      case Subject::Kind::kProcess:
        process = processes.Find(batch.subject.process);
        if (process == nullptr) return;
        job_id = process->job_id;
        speaker = SpeakerOf(*process);
        break;
      case Subject::Kind::kJob:
        job_id = batch.subject.name;
        break;
      case Subject::Kind::kHost:
      case Subject::Kind::kGpu:
        // What befalls the node befalls every job on it; whose card it is, each knows for itself.
        for (auto& [id, each] : jobs) each.window.OnSample(speaker, batch, observation.t);
        return;
      case Subject::Kind::kNone:
        return;
    }
    Job* job = FindJob(job_id);
    if (job == nullptr) return;
    for (const Sample& sample : batch.samples) {
      if (sample.signal != SignalId::kGpuDevicesOpen) continue;
      job->gpu_seen = job->gpu_seen || sample.value > 0;
      job->gpu_absent = true;
    }
    job->window.OnSample(speaker, batch, observation.t);
  }

  // The process of a job that had this number until a moment ago: the driver may tell of an error
  // after the process that made it has ended.
  const attribution::ProcessInfo* JustEnded(int32_t pid, Timestamp t) const {
    constexpr Duration kMoment = Seconds(5);
    const attribution::ProcessInfo* process = processes.FindPid(pid);
    const bool just = process != nullptr && !process->alive && t - process->ended <= kMoment;
    return just ? process : nullptr;
  }

  void On(const KernelEvent& event, const Observation& observation) {
    const attribution::ProcessInfo* victim = processes.Find(event.victim);
    Job* job = victim == nullptr ? nullptr : FindJob(victim->job_id);
    if (windows::FaultLog::Takes(event.type)) {
      for (auto& [id, each] : jobs) {
        if (each.window.end().ended) continue;
        each.Touch(observation);
        each.window.OnNodeFault(event, &each == job ? victim : nullptr, observation.t);
      }
      return;
    }
    const std::optional<logs::Incident> read = logs::ReadKernelEvent(event);
    if (victim == nullptr && read && read->pid > 0) victim = JustEnded(read->pid, observation.t);
    if (victim != nullptr) job = Wake(victim->job_id, observation.t);
    if (job != nullptr) {
      job->Touch(observation);
      job->window.OnKernelEvent(event, victim, read, observation.t);
      return;
    }
    // What a stranger's program did on a card is about nobody else there; a card that fails is.
    const features::GpuErrorOwner owner =
        read ? features::OwnerOfGpuError(*read) : features::GpuErrorOwner::kNone;
    const bool of_card =
        owner == features::GpuErrorOwner::kHardware || owner == features::GpuErrorOwner::kDriver;
    if (read && read->pid > 0 && !of_card) return;
    // The driver does not always know whose work it was; the card is known.
    for (auto& [id, each] : jobs) {
      if (!each.window.HoldsGpu(event.gpu_bus_id)) continue;
      each.Touch(observation);
      each.window.OnKernelEvent(event, nullptr, read, observation.t);
    }
  }

  // Who computes on a card matters to every job that does.
  void OnGpu(const Event& event, const attribution::ProcessInfo* process, Timestamp t) {
    // The driver lists a process for as long as its memory takes to be freed, when /proc no longer
    // tells when it began: one of a run's that has just ended is no stranger on the card.
    if (process == nullptr && event.process.start_ticks == 0)
      process = processes.FindPid(event.process.pid);
    for (auto& [id, job] : jobs) {
      const bool own = process != nullptr && process->job_id == id;
      windows::Speaker speaker = own ? SpeakerOf(*process) : windows::Speaker{};
      speaker.process = event.process;
      speaker.foreign = !own;
      job.window.OnEvent(event, speaker, t);
      job.dirty = true;
      if (own) job.gpu_seen = true;
    }
  }

  // Who has which card is no record of how a job went.
  void OnGpuMapping(const SchedulerFact& fact, Timestamp t) {
    std::vector<attribution::GpuName> cards = attribution::ReadGpuMapping(fact.value);
    Job* job = cards.empty() ? FindJob(fact.job_id)
                             : FindOrAddJob(fact.job_id, OwnerOf(fact.job_id, 0), t);
    if (job == nullptr) return;
    job->dirty = true;
    job->window.OnGpuMapping(std::move(cards), t);
  }

  void On(const SchedulerFact& fact, const Observation& observation) {
    if (fact.origin == "mapping") return OnGpuMapping(fact, observation.t);
    Job* job = Wake(fact.job_id, observation.t);
    if (job == nullptr) return;
    job->Touch(observation);
    // Slurm tells late, and when it was.
    Timestamp t = observation.t;
    const bool clocked = fact.wall_ns > 0 && Plausible(fact.wall_ns) && wall_offset_ns > 0;
    if (clocked) t = std::min(t, Timestamp{fact.wall_ns - wall_offset_ns});
    job->window.OnSchedulerFact(fact, t, clocked);
    const int32_t attempt = job->window.attempt().ordinal;
    if (!job->window.scheduler_told_state() || job->scheduler.told_attempt == attempt) return;
    job->scheduler.told_attempt = attempt;
    job->scheduler.told_end = observation.t;
  }

  void On(const Event& event, const Observation& observation) {
    windows::Speaker speaker;
    std::string_view job_id = event.rank.job_id;
    const attribution::ProcessInfo* process = processes.Find(event.process);
    if (event.type == WireType(EventType::kGpuIdentity) ||
        event.type == WireType(EventType::kGpuProcess)) {
      return OnGpu(event, process, observation.t);
    }
    if (process != nullptr) {
      job_id = process->job_id;
      speaker = SpeakerOf(*process);
    } else {
      speaker.rank = event.rank.rank;
    }
    Job* job = FindJob(job_id);
    if (job == nullptr) return;
    job->Touch(observation);
    job->window.OnEvent(event, speaker, observation.t);
  }
  void On(const EngineState&, const Observation&) {}  // the driver decides whether to restore
};

Engine::Engine(Config config, std::string node)
    : impl_(std::make_unique<Impl>(config, std::move(node))) {}

Engine::~Engine() = default;

void Engine::Accept(const Observation& observation) {
  ++impl_->counters.observations;
  if (!Plausible(observation.t.ns)) {
    ++impl_->counters.malformed;
    return;
  }
  std::visit([&](const auto& kind) { impl_->On(kind, observation); }, observation.kind);
}

Output Engine::Tick(Timestamp now) {
  Output output;
  if (!Plausible(now.ns)) return output;
  impl_->NoteMissedTicks(now);
  impl_->table.Tick(now, impl_->wall_offset_ns);
  for (auto it = impl_->jobs.begin(); it != impl_->jobs.end();) {
    Job& job = it->second;
    const bool final_before = job.judge.is_final();
    // A traceback waits for the rest of its chain; after a pause, or when another attempt has
    // begun, there is none.
    if (job.open_text &&
        (now - job.window.last_text() >= kTextPause || job.window.attempt_ended())) {
      impl_->FlushReaders(job, now);
      job.dirty = true;
    }
    // A running job is judged at each tick, for silence is an observation too; a final one only by
    // an authoritative record.
    if (job.dirty || !final_before) {
      const JudgeContext context{&impl_->config,
                                 impl_->node,
                                 impl_->wall_offset_ns,
                                 impl_->clock_uncertainty_s,
                                 StoresOf(job, impl_->sources),
                                 &impl_->sources,
                                 job.record,
                                 SchedulerMayTell(job, impl_->sources),
                                 job.scheduler.told_attempt == job.window.attempt().ordinal
                                     ? job.scheduler.told_end
                                     : Timestamp{}};
      const bool judged = !final_before || !job.record.empty();
      job.window.SetKernelLog(&impl_->kernel_log);
      if (judged && job.judge.Evaluate(job.window, context, now))
        output.changed.push_back(it->first);
      DescribeStatus(job.window, impl_->processes, job.judge, impl_->wall_offset_ns, now,
                     job.status);
      job.status.uid = job.uid;
      if (const std::string& why = impl_->table.why_fewer(); !why.empty() && !final_before)
        job.status.verdict.mutable_data_quality()->add_notes("fewer jobs are watched: " + why);
      output.renewed.push_back(it->first);
      job.dirty = false;
      job.record.clear();
      const bool live = job.judge.verdict().state() == proto::LIVE;
      job.scheduler.Ask(it->first, job.window.attempt().ordinal, live,
                        !live && job.judge.verdict().code() != "G1", now, output.requests);
      if (!job.judge.is_final()) job.scheduler.AskParents(job.window, now, output.requests);
    }
    if (job.judge.is_final() && now - job.judge.final_since() >= impl_->config.forget_after_end) {
      output.ended.push_back(it->first);
      it = impl_->table.Erase(it);
    } else if (job.judge.is_final() && !job.dirty && now - job.judge.final_since() >= kRest) {
      it = impl_->table.Rest(it);
    } else {
      ++it;
    }
  }
  impl_->table.ForgetResting(now - impl_->config.forget_after_end);
  output.shed = impl_->table.TakeShed();
  for (std::string& id : impl_->table.TakeWritten()) output.renewed.push_back(std::move(id));
  for (std::string& id : impl_->table.TakeEnded()) output.ended.push_back(std::move(id));
  return output;
}

std::vector<const JobStatus*> Engine::Jobs() const {
  std::vector<const JobStatus*> all;
  all.reserve(impl_->jobs.size());
  for (const auto& [id, job] : impl_->jobs) {
    if (!job.status.job_id.empty()) all.push_back(&job.status);
  }
  impl_->table.ForEachStored([&all](const JobStatus& status) { all.push_back(&status); });
  std::sort(all.begin(), all.end(),
            [](const JobStatus* a, const JobStatus* b) { return a->job_id < b->job_id; });
  return all;
}

bool Engine::Watches(std::string_view job_id) const {
  return impl_->FindJob(job_id) != nullptr || impl_->table.Rests(job_id);
}

void Engine::SetMaxJobs(int32_t most, std::string why) {
  impl_->table.SetMost(most, std::move(why));
}

int32_t Engine::max_jobs() const {
  return impl_->table.most();
}

size_t Engine::jobs() const {
  return impl_->jobs.size();
}

const JobStatus* Engine::Find(std::string_view job_id) const {
  const Job* job = impl_->FindJob(job_id);
  if (job == nullptr) return impl_->table.FindStored(job_id);
  return job->status.job_id.empty() ? nullptr : &job->status;
}

std::optional<JobSummary> Engine::Summarize(std::string_view job_id, Timestamp now) const {
  const Job* job = impl_->FindJob(job_id);
  if (job == nullptr) return std::nullopt;
  return SummarizeJob(job->window, job->judge.verdict(), impl_->wall_offset_ns, now);
}

std::string Engine::Explain(int32_t pid) const {
  const attribution::ProcessInfo* process = impl_->processes.FindPid(pid);
  return process == nullptr ? "" : ExplainProcess(*process, impl_->FindJob(process->job_id));
}

Engine::Counters Engine::counters() const {
  Counters counters = impl_->counters;
  counters.jobs_dropped = impl_->table.dropped();
  return counters;
}

std::string Engine::Save() const {
  ArchiveWriter archive;
  const std::vector<std::pair<std::string, std::string>> jobs = impl_->table.SaveAll();
  archive(impl_->processes, impl_->sources, impl_->boot_id, impl_->wall_offset_ns,
          impl_->clock_uncertainty_s, impl_->last_tick, impl_->kernel_log,
          static_cast<uint64_t>(jobs.size()));
  for (const auto& [id, bytes] : jobs) archive(id, bytes);
  return archive.TakeSealed();
}

bool Engine::Restore(std::string_view bytes) {
  const std::optional<std::string_view> content = ArchiveReader::Unseal(bytes);
  if (!content) return false;
  auto next = std::make_unique<Impl>(impl_->config, impl_->node);
  next->counters = impl_->counters;
  next->table.set_dropped(impl_->table.dropped());
  ArchiveReader archive(*content);
  uint64_t jobs = 0;
  archive(next->processes, next->sources, next->boot_id, next->wall_offset_ns,
          next->clock_uncertainty_s, next->last_tick, next->kernel_log, jobs);
  for (uint64_t i = 0; i < jobs && archive.ok(); ++i) {
    std::string id, job;
    archive(id, job);
    if (!archive.ok() || !LoadJob(job, next->jobs[id])) return false;
  }
  if (!archive.Complete()) return false;
  // What the sources of this process have said goes before what was stored.
  windows::KernelLogSpans kernel_log = next->kernel_log;
  if (!impl_->sources.empty()) kernel_log.GoOn(impl_->kernel_log, next->last_tick);
  for (const SourceState& state : impl_->sources) next->On(state, {});
  next->kernel_log = std::move(kernel_log);
  for (auto& [id, job] : next->jobs) {
    if (job.judge.verdict().job_id().empty()) continue;  // it had not been judged
    const Timestamp last =
        std::max({job.window.last_text(), job.window.end().t, job.window.last_process_exit()});
    DescribeStatus(job.window, next->processes, job.judge, next->wall_offset_ns, last, job.status);
    job.status.uid = job.uid;
  }
  impl_ = std::move(next);
  return true;
}

}  // namespace rankscope::engine
