// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/engine_job.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "detectors/attribution/explanation.h"
#include "detectors/features/ras_check.h"
#include "detectors/model/archive.h"

namespace rankscope::engine {

using features::kStores;

namespace {

// What may change a verdict that is final: the scheduler's and the kernel's records, and a job that
// begins again, by a process or by its wrapper. Text and exits of leftover processes may not.
std::string RecordName(const Observation& observation) {
  if (const auto* fact = std::get_if<SchedulerFact>(&observation.kind);
      fact != nullptr && fact->field == "parent_summary") {
    return "what is left of an earlier job, from " + fact->origin;
  } else if (fact != nullptr) {
    return "scheduler record " + fact->field + "=" + fact->value +
           (fact->origin.empty() ? "" : " from " + fact->origin);
  }
  if (const auto* record = std::get_if<SchedulerRecord>(&observation.kind)) {
    const bool of_state = !record->state.empty();
    return std::string("scheduler record ") + (of_state ? "state=" : "event=") +
           (of_state ? record->state : record->event) +
           (record->origin.empty() ? "" : " from " + record->origin);
  }
  if (const auto* event = std::get_if<KernelEvent>(&observation.kind))
    return "kernel record " + std::string(NameOf(event->type));
  if (const auto* start = std::get_if<ProcessStart>(&observation.kind))
    return "a new process of the job, pid " + std::to_string(start->key.pid);
  if (const auto* mark = std::get_if<RunMark>(&observation.kind))
    return "the job was begun again, restart " + std::to_string(mark->slurm_restart);
  return {};
}

}  // namespace

void Job::Touch(const Observation& observation) {
  dirty = true;
  if (judge.is_final()) record = RecordName(observation);
}

void SchedulerQuestions::Ask(const std::string& job_id, int32_t attempt, bool live,
                             bool ended_badly, Timestamp now, std::vector<Request>& requests) {
  if (!first_node) return;
  constexpr Duration kPatience = Seconds(90);
  if (live && asked_begin < attempt) {
    asked_begin = attempt;
    requests.push_back({Request::What::kSchedulerBegin, job_id, now + kPatience});
  }
  if (ended_badly && asked_end < attempt) {
    asked_end = attempt;
    requests.push_back({Request::What::kSchedulerEnd, job_id, now + kPatience});
  }
}

void SchedulerQuestions::AskParents(const windows::JobWindow& window, Timestamp now,
                                    std::vector<Request>& requests) {
  // The epilog writes a comment up to 40 s after the end, and accounting is seconds behind.
  constexpr Duration kPatience = Seconds(100);
  if (!first_node || asked_parents) return;
  std::vector<std::string> parents;
  if (window.attempt().slurm_restart > 0 && window.earlier().empty())
    parents.push_back(window.job_id());
  for (const SlurmDependency& dependency : window.parents().Dependencies(window.array_task())) {
    if (parents.size() < windows::ParentJobs::kMost) parents.push_back(dependency.job_id);
  }
  asked_parents = !parents.empty();
  for (std::string& parent : parents)
    requests.push_back(
        {Request::What::kJobSummary, window.job_id(), now + kPatience, std::move(parent)});
}

bool FollowedOutput::OnEvent(const Event& event, Timestamp t) {
  const auto find = [&event](std::string_view key) {
    return std::find_if(event.num.begin(), event.num.end(),
                        [key](const IntKeyValue& each) { return each.key == key; });
  };
  const auto told = find("open");
  if (told == event.num.end()) return false;
  open = told->value != 0;
  unread = unread || find("unread") != event.num.end();
  if (!open) closed = t;
  return true;
}

void FollowedOutput::OnLeft(Timestamp t) {
  if (std::exchange(open, false)) closed = t;
}

windows::Speaker SpeakerOf(const attribution::ProcessInfo& process) {
  const bool ranked = process.role == attribution::ProcessRole::kRank;
  const bool worker = process.role == attribution::ProcessRole::kWorker;
  return {ranked ? process.rank : -1, ranked ? process.local_rank : -1, process.key,
          worker ? process.rank : -1, process.comm};
}

std::string ExplainProcess(const attribution::ProcessInfo& process, const Job* job) {
  attribution::GpuWords gpus;
  std::string ras;
  if (job != nullptr) {
    for (const windows::ClaimedGpu& gpu :
         job->window.gpu_claims().Of(job->window.now().kernel.gpus)) {
      const bool of_rank =
          std::find(gpu.ranks.begin(), gpu.ranks.end(), process.rank) != gpu.ranks.end();
      if (process.rank >= 0 && !gpu.ranks.empty() && !of_rank) continue;
      const std::string_view word = attribution::NameOf(gpu.word);
      gpus.push_back(std::to_string(gpu.gpu->index) + " " + gpu.gpu->uuid + ": by " +
                     std::string(word.empty() ? "process" : word) +
                     (of_rank ? ", of this rank" : ", of its job"));
    }
    if (process.role == attribution::ProcessRole::kRank) {
      const int64_t pid_inside = process.inner_pid > 0 ? process.inner_pid : process.key.pid;
      ras = features::RasLine(features::CheckRas(job->window, job->window.now()), process.rank,
                              pid_inside);
    }
  }
  return attribution::Explain(process, gpus, ras);
}

std::string SaveJob(Job& job) {
  ArchiveWriter archive;
  job.judge.BeforeSave();
  archive(job.uid, job.window, job.judge, job.open_text, job.gpu_seen, job.gpu_absent, job.record,
          job.scheduler, job.output, static_cast<uint64_t>(job.readers.size()));
  for (const auto& [stream, reader] : job.readers) archive(stream, reader.Save());
  return archive.TakeSealed();
}

bool LoadJob(std::string_view bytes, Job& job) {
  const std::optional<std::string_view> content = ArchiveReader::Unseal(bytes);
  if (!content) return false;
  ArchiveReader archive(*content);
  uint64_t readers = 0;
  archive(job.uid, job.window, job.judge, job.open_text, job.gpu_seen, job.gpu_absent, job.record,
          job.scheduler, job.output, readers);
  for (uint64_t r = 0; r < readers && archive.ok(); ++r) {
    uint32_t stream = 0;
    std::string state;
    archive(stream, state);
    if (!job.readers[stream].Restore(state)) return false;
  }
  job.judged =
      std::max({job.window.last_text(), job.window.end().t, job.window.last_process_exit()});
  return archive.Complete() && job.judge.AfterRestore();
}

bool SchedulerMayTell(const Job& job, const std::vector<SourceState>& sources) {
  return job.scheduler.scheduled &&
         std::any_of(sources.begin(), sources.end(), [](const SourceState& each) {
           return each.name == "slurm" && each.state == Availability::kUp;
         });
}

namespace {

// Whether calls of a rank are not all seen of late: what was counted says nothing of the job then.
// Its source tells -1 every ten seconds, beside what is told each second of a process that lives.
bool HasUnknownCalls(const windows::JobWindow& window, SignalId signal) {
  constexpr Duration kTold = Seconds(30);
  return std::any_of(window.ranks().begin(), window.ranks().end(), [&](const auto& each) {
    const windows::SampleRings& rings = each.second.rings;
    return rings.Last(signal) < 0 &&
           rings.LastTime(signal) + kTold >= rings.LastTime(SignalId::kCpuSeconds);
  });
}

}  // namespace

std::array<Availability, kStores> StoresOf(const Job& job,
                                           const std::vector<SourceState>& sources) {
  const auto source = [&sources](std::string_view name) {
    const auto found = std::find_if(sources.begin(), sources.end(),
                                    [name](const SourceState& each) { return each.name == name; });
    return found == sources.end() ? Availability::kUnspecified : found->state;
  };
  std::array<Availability, kStores> stores{};
  stores.fill(Availability::kUnsupported);
  const auto set = [&stores](proto::Store store, Availability state) {
    stores[static_cast<size_t>(store)] = state;
  };
  if (!job.window.streams().empty() || job.window.wrapped())
    set(proto::STORE_LOG, Availability::kUp);
  if (job.window.end().status_known || job.window.processes_seen() > 0)
    set(proto::STORE_PROCESS, Availability::kUp);
  for (const auto& [store, name] :
       {std::pair{proto::STORE_HOST, "procfs"}, std::pair{proto::STORE_KERNEL, "kmsg"},
        std::pair{proto::STORE_KERNEL, "process"}, std::pair{proto::STORE_SCHEDULER, "slurm"},
        std::pair{proto::STORE_GPU, "nvml"}, std::pair{proto::STORE_CUDA, "cuda"},
        std::pair{proto::STORE_NCCL, "nccl"}, std::pair{proto::STORE_FLEET, "fleet"}}) {
    // Of two sources of one store, one that is up is enough.
    if (const Availability state = source(name);
        state != Availability::kUnspecified &&
        stores[static_cast<size_t>(store)] != Availability::kUp)
      set(store, state);
  }
  // Slurm is asked about the begin and about a bad end: what nobody has asked it rules nothing out,
  // and says nothing against Slurm.
  if (job.window.scheduler_told_state()) {
    set(proto::STORE_SCHEDULER, Availability::kUp);
  } else if (source("slurm") == Availability::kUp) {
    set(proto::STORE_SCHEDULER,
        job.scheduler.first_node ? Availability::kUnspecified : Availability::kNotApplicable);
  }
  for (const auto& [store, signal] : {std::pair{proto::STORE_CUDA, SignalId::kCudaUse},
                                      std::pair{proto::STORE_NCCL, SignalId::kCommunicators}}) {
    if (HasUnknownCalls(job.window, signal)) set(store, Availability::kDown);
  }
  // What NCCL and PyTorch report of themselves is theirs, however it came here.
  if (job.window.now().kernel.reports.any()) set(proto::STORE_NCCL, Availability::kUp);
  // A card that the job was given is its matter, whether anything of it holds the card or not.
  if (job.gpu_absent && !job.gpu_seen && !job.window.gpu_claims().given()) {
    set(proto::STORE_GPU, Availability::kNotApplicable);
    // Whoever calls the CUDA runtime uses it, on whatever card.
    if (job.window.now().kernel.launches.ranks().empty())
      set(proto::STORE_CUDA, Availability::kNotApplicable);
  }
  return stores;
}

}  // namespace rankscope::engine
