// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What each kind of observation changes.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/attribution/gpu_environment.h"
#include "detectors/engine/engine_impl.h"
#include "detectors/features/gpu_error.h"
#include "detectors/logs/failures/kernel_event.h"
#include "detectors/model/event_types.h"
#include "detectors/model/subs.h"
#include "detectors/windows/said_worker.h"

namespace rankscope::engine {
namespace {

// Ticks come each second, and a busy machine delays one by two or three. After a longer hole nobody
// was listening.
constexpr Duration kMissedTicks = Seconds(5);

// No clock shows such times (146 years); within them sums and differences cannot overflow.
constexpr int64_t kMaxTimeNs = int64_t{1} << 62;

}  // namespace

bool Plausible(int64_t ns) {
  return ns > -kMaxTimeNs && ns < kMaxTimeNs;
}

Job* Engine::Impl::Wake(std::string_view id, Timestamp t) {
  if (Job* job = FindJob(id)) return job;
  return Booted(table.Wake(id, t, wall_offset_ns));
}

Job* Engine::Impl::Booted(Job* job) const {
  if (job != nullptr) job->window.OnBoot(node, boot_id);
  return job;
}

JobView Engine::Impl::View(const Job& job) const {
  JobView view{job.window.job_id(), job.uid};
  view.verdict = &job.judge.verdict();
  const proto::State state = view.verdict->state();
  view.running = state == proto::LIVE || state == proto::STATE_UNSPECIFIED;
  view.window = &job.window;
  view.processes = &processes;
  view.assertions = &job.judge.assertions();
  view.verdict_changes = job.judge.changes();
  view.wall_offset_ns = wall_offset_ns;
  view.judged = job.judged;
  view.why_fewer = job.why_fewer;
  return view;
}

Job* Engine::Impl::FindOrAddJob(const std::string& id, int64_t uid, Timestamp t) {
  if (Job* job = Wake(id, t)) return job;
  return Booted(table.FindOrAdd(id, uid, t, wall_offset_ns));
}

int64_t Engine::Impl::OwnerOf(const std::string& job_id, int64_t otherwise) const {
  const attribution::JobFacts* facts = processes.FindJob(job_id);
  return facts == nullptr ? otherwise : facts->uid;
}

int64_t Engine::Impl::OwnerOf(const attribution::ProcessInfo* process) const {
  return process == nullptr ? kNobody : OwnerOf(process->job_id, process->uid);
}

void Engine::Impl::NoteUnheard(Timestamp begin, Timestamp end, windows::UnheardWhy why) {
  for (auto& [id, job] : jobs) {
    if (!job.window.end().ended) job.window.hearing().OnSpan(begin, end, why);
  }
}

void Engine::Impl::NoteMissedTicks(Timestamp now) {
  if (last_tick.ns != 0 && now - last_tick > kMissedTicks)
    NoteUnheard(last_tick, now, windows::UnheardWhy::kStopped);
  last_tick = now;
}

void Engine::Impl::NoteLate(const Observation& observation) {
  constexpr Duration kApart = Seconds(1);
  const Timestamp t = observation.t;
  if (last_tick.ns == 0 || t - last_tick <= kMissedTicks || t - noted_late < kApart) return;
  if (!std::holds_alternative<SampleBatch>(observation.kind) &&
      !std::holds_alternative<LogLine>(observation.kind) &&
      !std::holds_alternative<Event>(observation.kind))
    return;
  noted_late = t;
  NoteUnheard(last_tick, t, windows::UnheardWhy::kStopped);
}

void Engine::Impl::On(const Epoch& epoch, const Observation& observation) {
  if (!Plausible(epoch.wall_offset_ns) || !Plausible(epoch.away_since.ns)) {
    ++counters.malformed;
    return;
  }
  wall_offset_ns = epoch.wall_offset_ns;
  clock_uncertainty_s = static_cast<double>(epoch.uncertainty_ns) * 1e-9;
  if (!epoch.boot_id.empty()) boot_id = epoch.boot_id;
  for (auto& [id, job] : jobs) job.window.OnBoot(node, boot_id);
  if (epoch.away_since.ns == 0) return;
  for (auto& [id, job] : jobs) job.output.OnLeft(epoch.away_since);
  NoteUnheard(epoch.away_since, observation.t, windows::UnheardWhy::kAway);
  kernel_log.OnAway(epoch.away_since);  // what it held meanwhile is not read again
  last_tick = observation.t;
}

void Engine::Impl::On(const SourceState& state, const Observation& observation) {
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

void Engine::Impl::NoteSource(const SourceState* before, const SourceState& now, Timestamp t) {
  for (auto& [id, job] : jobs) {
    if (!job.window.end().ended) job.window.hearing().OnSource(before, now, t);
  }
}

void Engine::Impl::On(const RunMark& mark, const Observation& observation) {
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

void Engine::Impl::FlushReaders(Job& job, Timestamp t) {
  job.open_text = false;
  for (auto& [stream, reader] : job.readers) {
    for (const logs::Record& record : reader.Flush()) Take(record, stream, nullptr, job, t);
  }
}

void Engine::Impl::On(const ProcessStart& start, const Observation& observation) {
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

void Engine::Impl::On(const ProcessExit& exit, const Observation& observation) {
  const attribution::ProcessInfo* before = processes.Find(exit.key);
  const bool was_alive = before != nullptr && before->alive;
  const attribution::ProcessInfo* process = processes.OnExit(exit, observation.t);
  if (process == nullptr || !was_alive) return;
  Job* job = FindJob(process->job_id);
  if (job == nullptr) return;
  job->dirty = true;
  job->window.OnProcessExit(*process, observation.t);
}

void Engine::Impl::On(const SignalSent& signal, const Observation& observation) {
  const attribution::ProcessInfo* target = processes.Find(signal.target);
  Job* job = target == nullptr ? nullptr : FindJob(target->job_id);
  if (job == nullptr) return;
  job->dirty = true;
  job->window.OnSignal(signal, *target, processes.Find(signal.sender), observation.t);
}

void Engine::Impl::On(const LogLine& line, const Observation& observation) {
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
  if (job->readers.size() >= windows::JobWindow::kMaxStreams && !job->readers.contains(line.stream))
    return;  // the window has counted it
  for (const logs::Record& record : job->readers[line.stream].Feed(line, observation.t))
    Take(record, line.stream, &line, *job, observation.t);
}

void Engine::Impl::Take(const logs::Record& record, uint32_t stream, const LogLine* line, Job& job,
                        Timestamp t) const {
  const auto* const said = std::get_if<logs::Incident>(&record);
  if (said != nullptr && said->pid != 0 && said->sub == subs::kDataloaderWorker) {
    // PyTorch names a worker that died by its pid alone.
    const attribution::ProcessInfo* const worker = processes.FindPid(said->pid);
    if (worker != nullptr && worker->job_id == job.window.job_id() && worker->rank >= 0 &&
        worker->role == attribution::ProcessRole::kWorker) {
      logs::Incident named = *said;
      windows::NoteRankOfWorker(named, worker->rank);
      job.window.OnRecord(named, stream, line, t);
      return;
    }
  }
  job.window.OnRecord(record, stream, line, t);
}

void Engine::Impl::NoteComputing(const ProcessKey& key, Timestamp t) {
  const attribution::ProcessInfo* const process = processes.OnComputes(key);
  const auto withdrawn = processes.TakeWithdrawn();
  if (process == nullptr && withdrawn.empty()) return;
  Job* const job = FindJob(processes.Find(key)->job_id);
  if (job == nullptr) return;
  for (const auto& [other, rank] : withdrawn) job->window.WithdrawRank(other, rank);
  if (process != nullptr) job->window.OnProcessStart(*process, true, t);
}

void Engine::Impl::On(const SampleBatch& batch, const Observation& observation) {
  const attribution::ProcessInfo* process = nullptr;
  std::string_view job_id;
  windows::Speaker speaker;
  switch (batch.subject.kind) {
    case Subject::Kind::kRank:
      job_id = batch.subject.rank.job_id;
      speaker.rank = batch.subject.rank.rank;
      break;
    case Subject::Kind::kProcess:
      if (attribution::Computes(batch)) NoteComputing(batch.subject.process, observation.t);
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
    if (sample.signal == SignalId::kJobOomKills) {
      const attribution::JobFacts* const facts = processes.FindJob(job_id);
      job->window.OnOomKills(sample.value, facts != nullptr && facts->by_cgroup, observation.t);
    }
    if (sample.signal != SignalId::kGpuDevicesOpen) continue;
    job->gpu_seen = job->gpu_seen || sample.value > 0;
    job->gpu_absent = true;
  }
  job->window.OnSample(speaker, batch, observation.t);
}

const attribution::ProcessInfo* Engine::Impl::JustEnded(int32_t pid, Timestamp t) const {
  constexpr Duration kMoment = Seconds(5);
  const attribution::ProcessInfo* process = processes.FindPid(pid);
  const bool just = process != nullptr && !process->alive && t - process->ended <= kMoment;
  return just ? process : nullptr;
}

void Engine::Impl::On(const KernelEvent& event, const Observation& observation) {
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
  // The driver does not always know whose work it was, and its library never says; the card is
  // known. Where somebody else computes on it too, a program's error is not known to be the job's.
  for (auto& [id, each] : jobs) {
    const windows::GpuWindow* const card = each.window.HeldGpu(event.gpu_bus_id);
    if (card == nullptr) continue;
    if (owner == features::GpuErrorOwner::kProgram && card->IsShared(observation.t)) continue;
    each.Touch(observation);
    each.window.OnKernelEvent(event, nullptr, read, observation.t);
  }
}

void Engine::Impl::OnGpu(const Event& event, const attribution::ProcessInfo* process, Timestamp t) {
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

void Engine::Impl::OnGpuMapping(const SchedulerFact& fact, Timestamp t) {
  std::vector<attribution::GpuName> cards = attribution::ReadGpuMapping(fact.value);
  Job* job =
      cards.empty() ? FindJob(fact.job_id) : FindOrAddJob(fact.job_id, OwnerOf(fact.job_id, 0), t);
  if (job == nullptr) return;
  job->dirty = true;
  job->window.OnGpuMapping(std::move(cards), t);
}

void Engine::Impl::On(const SchedulerFact& fact, const Observation& observation) {
  if (fact.origin == "mapping") return OnGpuMapping(fact, observation.t);
  Job* job = Wake(fact.job_id, observation.t);
  if (job == nullptr) return;
  job->Touch(observation);
  job->window.OnSchedulerFact(fact, {observation.t, wall_offset_ns});
  NoteSchedulerState(*job, observation.t);
}

void Engine::Impl::On(const SchedulerRecord& record, const Observation& observation) {
  Job* job = Wake(record.job_id, observation.t);
  if (job == nullptr) return;
  job->Touch(observation);
  // Slurm answers late, and says when it was.
  job->window.OnSchedulerRecord(record, {observation.t, wall_offset_ns});
  NoteSchedulerState(*job, observation.t);
}

void Engine::Impl::NoteSchedulerState(Job& job, Timestamp t) {
  const int32_t attempt = job.window.attempt().ordinal;
  if (!job.window.scheduler_told_state() || job.scheduler.told_attempt == attempt) return;
  job.scheduler.told_attempt = attempt;
  job.scheduler.told_end = t;
}

void Engine::Impl::On(const Event& event, const Observation& observation) {
  windows::Speaker speaker;
  std::string_view job_id = event.rank.job_id;
  if (attribution::Computes(event)) NoteComputing(event.process, observation.t);
  const attribution::ProcessInfo* process = processes.Find(event.process);
  if (event.type == WireType(EventType::kGpuIdentity) ||
      event.type == WireType(EventType::kGpuProcess)) {
    return OnGpu(event, process, observation.t);
  }
  if (event.type == WireType(EventType::kNodeGap)) {
    for (auto& [id, other] : jobs) {
      if (other.window.end().ended) continue;
      other.window.OnEvent(event, speaker, observation.t);
      other.dirty = true;
    }
    return;
  }
  if (process != nullptr) {
    job_id = process->job_id;
    speaker = SpeakerOf(*process);
  } else {
    speaker.rank = event.rank.rank;
  }
  Job* job = FindJob(job_id);
  // A recording of dumps, or of a target, tells of a job of which nothing else may be known yet.
  const bool of_job = event.type == WireType(EventType::kFlightRecord) ||
                      event.type == WireType(EventType::kTarget);
  if (job == nullptr && process == nullptr && of_job && !event.rank.job_id.empty() &&
      !table.Rests(event.rank.job_id))
    job = FindOrAddJob(event.rank.job_id, OwnerOf(event.rank.job_id, kNobody), observation.t);
  if (job == nullptr) return;
  job->Touch(observation);
  if (event.type == WireType(EventType::kOutputRead) && !event.num.empty()) {
    if (!job->output.OnEvent(event, observation.t)) job->window.OnPastText(event);
    return;
  }
  job->window.OnEvent(event, speaker, observation.t);
}

}  // namespace rankscope::engine
