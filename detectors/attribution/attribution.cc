// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/attribution.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <utility>

#include "detectors/attribution/launchers.h"

namespace rankscope::attribution {
namespace {

// FNV-1a: a short stable name for a launcher that has no id of its own.
std::string HashedJobId(std::string_view boot_id, const ProcessKey& root) {
  uint32_t hash = 2166136261u;
  const auto mix = [&hash](std::string_view bytes) {
    for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 16777619u;
  };
  mix(boot_id);
  mix(std::to_string(root.pid));
  mix(std::to_string(root.start_ticks));
  char text[16];
  std::snprintf(text, sizeof text, "proc-%08x", hash);
  return text;
}

std::string JoinArguments(const std::vector<std::string>& argv) {
  std::string joined;
  for (const std::string& argument : argv) {
    if (!joined.empty()) joined += ' ';
    joined += argument;
    if (joined.size() > Attribution::kCommandCap) {
      joined.resize(Attribution::kCommandCap);
      break;
    }
  }
  return joined;
}

std::string ParentPhrase(const ProcessInfo& parent) {
  return "its parent, pid " + std::to_string(parent.key.pid);
}

constexpr Fact kInherited[] = {Fact::kStep,      Fact::kTask,  Fact::kNodeRank,
                               Fact::kNode,      Fact::kArray, Fact::kHet,
                               Fact::kContainer, Fact::kPod,   Fact::kMaster};

// What a fork has of its parent until it tells something itself.
void Inherit(const ProcessInfo& parent, ProcessInfo& info) {
  info.step_id = parent.step_id;
  info.task = parent.task;
  info.node_rank = parent.node_rank;
  info.node_name = parent.node_name;
  info.master_addr = parent.master_addr;
  info.container_id = parent.container_id;
  info.pod_uid = parent.pod_uid;
  info.array_job_id = parent.array_job_id;
  info.array_task = parent.array_task;
  info.het_job_id = parent.het_job_id;
  info.het_component = parent.het_component;
  info.launcher = parent.launcher;
  for (const Provenance& known : parent.provenance) {
    if (std::find(std::begin(kInherited), std::end(kInherited), known.fact) != std::end(kInherited))
      info.provenance.push_back({known.fact, ParentPhrase(parent), {}});
  }
}

// Of digits, as Settle gives them; -1 for none, and for more than fit.
int32_t NumberOf(const std::string& text) {
  int32_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string TextOf(int32_t number) {
  return number < 0 ? std::string() : std::to_string(number);
}

// Who started it: of several one above the other, the innermost. They do not disagree.
void TakeLauncher(const Told& told, const ProcessInfo* parent, ProcessInfo& info) {
  std::vector<Word> words;
  if (parent != nullptr && parent->job_id == info.job_id)
    words.push_back(
        {ParentPhrase(*parent), std::string(LauncherIn(parent->comm, parent->command))});
  const auto by = [&](std::string_view key, std::string_view launcher) {
    if (!told.Value(key).empty())
      words.push_back({std::string(key) + " in its environment", std::string(launcher)});
  };
  by("TORCHELASTIC_RUN_ID", "torchrun");
  by("OMPI_COMM_WORLD_RANK", "mpirun");
  const std::string& step = info.step_id;
  if (step == "batch") words.push_back({"its step", "sbatch"});
  if (!step.empty() && step.front() >= '0' && step.front() <= '9')
    words.push_back({"its step", "srun"});
  const auto first = std::find_if(words.begin(), words.end(),
                                  [](const Word& word) { return !word.value.empty(); });
  info.launcher = first == words.end() ? std::string() : Settle(info, Fact::kLauncher, {*first});
}

// Facts of their own that a process tells. Its job is known.
void TakeFacts(const Told& told, ProcessInfo& info) {
  const bool slurm =
      !info.job_id.empty() && info.job_id.find_first_not_of("0123456789") == std::string::npos;
  if (slurm) {
    info.step_id = Settle(info, Fact::kStep, told.Of(Fact::kStep));
    info.task = NumberOf(Settle(info, Fact::kTask, told.Of(Fact::kTask)));
    info.array_job_id = Settle(info, Fact::kArray, told.Of(Fact::kArray));
    info.het_job_id = Settle(info, Fact::kHet, told.Of(Fact::kHet));
  }
  if (!info.array_job_id.empty()) info.array_task = TextOf(told.Int("SLURM_ARRAY_TASK_ID", -1));
  if (!info.het_job_id.empty()) {
    info.het_component = told.Int("SLURM_HET_JOB_OFFSET", -1);
    if (info.het_component < 0) info.het_component = told.HetComponent();
  }
  info.node_rank = NumberOf(Settle(info, Fact::kNodeRank, told.Of(Fact::kNodeRank)));
  info.node_name = Settle(info, Fact::kNode, told.Of(Fact::kNode));
  info.master_addr = Settle(info, Fact::kMaster, told.Of(Fact::kMaster));
  info.container_id = Settle(info, Fact::kContainer, told.Of(Fact::kContainer));
  info.pod_uid = Settle(info, Fact::kPod, told.Of(Fact::kPod));
}

// A user's ranks may have been started by root, and not by another user.
bool MayLaunch(uint32_t uid, const JobFacts& facts) {
  return uid == facts.uid || uid == 0;
}

}  // namespace

void Attribution::OnRunBegin(const RunMark& mark, Timestamp t) {
  if (mark.root.pid == 0) return;
  ProcessInfo info;
  const auto known = processes_.find(mark.root);
  if (known != processes_.end()) {
    info = known->second;
  } else {
    info.uid = mark.uid.value_or(0);
    if (!MakeRoom(info.uid)) return;
  }
  info.key = mark.root;
  info.job_id = mark.job_id;
  info.job_by = "the run wrapper started it";
  info.wrapped = true;
  if (info.command.empty()) info.command = JoinArguments(mark.argv);
  info.started = t;
  Put(std::move(info));
}

// By the rules at the head of attribution.h.
void Attribution::FindJobOf(const ProcessStart& start, const Told& told, const ProcessInfo* parent,
                            std::string_view boot_id, ProcessInfo& info) const {
  const std::string& in_cgroup = told.cgroup().job_id;
  const Word named = told.EnvironmentJob();
  const bool of_parent = parent != nullptr && !parent->job_id.empty();
  std::vector<Word> words;
  if (info.wrapped) words.push_back({info.job_by, info.job_id});
  if (of_parent && parent->wrapped) words.push_back({ParentPhrase(*parent), parent->job_id});
  const bool believed = MayName(named.value, start.uid);
  // A source corrects what it says by the cgroup, unless a wrapper has told it.
  Word source{"the source that started it", start.job_id};
  if (of_parent && start.job_id == parent->job_id) source.by = ParentPhrase(*parent);
  if (start.job_id == named.value) source.by = named.by;
  if (start.job_id != in_cgroup && (believed || start.job_id != named.value))
    words.push_back(source);
  words.push_back(
      {told.cgroup().sluid.empty() ? "its cgroup" : "its cgroup, by its SLUID", in_cgroup});
  words.push_back({info.job_by, info.job_id});
  if (of_parent) words.push_back({ParentPhrase(*parent), parent->job_id});
  const bool whole = told.IsHetLeader(named.value);  // names the job that this one is a part of
  if (believed && !whole) words.push_back(named);
  const bool unnamed =
      std::all_of(words.begin(), words.end(), [](const Word& word) { return word.value.empty(); });
  if (told.rank_keys() != nullptr && unnamed) {
    // Ranks of one launcher are siblings: the launcher names the job.
    const ProcessKey root = start.parent.pid > 1 ? start.parent : start.key;
    words.push_back(
        {"boot id and launcher pid " + std::to_string(root.pid), HashedJobId(boot_id, root)});
  } else if (unnamed) {
    // It is told of after them. A shell that sets RANK is no launcher, and may start other things.
    const std::string named_by_it = HashedJobId(boot_id, start.key);
    const JobFacts* const facts = FindJob(named_by_it);
    if (facts != nullptr && !facts->launcher.empty() && MayLaunch(start.uid, *facts))
      words.push_back({std::string(kByItsRanks) + facts->launcher, named_by_it});
  }
  // An earlier word of the same source stays without being held against the new one.
  std::vector<Word> once;
  for (Word& word : words) {
    const bool again = std::any_of(once.begin(), once.end(),
                                   [&word](const Word& known) { return known.by == word.by; });
    if (!again) once.push_back(std::move(word));
  }
  info.job_id = Settle(info, Fact::kJob, once);
  if (info.job_id.empty()) return;
  Provenance& how = info.provenance.back();
  if (!believed)
    how.against += (how.against.empty() ? "" : ", ") + named.by + " says " + named.value +
                   ", which is another user's";
  info.job_by = how.by;
  info.wrapped = info.wrapped || (of_parent && parent->wrapped && parent->job_id == info.job_id) ||
                 info.job_id.starts_with("run-");
}

// A rank by SLURM_PROCID alone is whatever srun started: a shell, or a launcher that nobody knows.
// Numbers of ranks below it are believed instead of its own.
void Attribution::WithdrawTaskRanks(const ProcessInfo* parent) {
  constexpr int kDeepest = 16;
  for (int depth = 0; parent != nullptr && parent->task_rank && depth < kDeepest; ++depth) {
    ProcessInfo& above = processes_[parent->key];
    if (above.role == ProcessRole::kRank) withdrawn_.emplace_back(above.key, above.rank);
    above.role = ProcessRole::kLauncher;
    above.rank = above.local_rank = -1;
    above.task_rank = false;
    above.rank_by.clear();
    std::erase_if(above.provenance, [](const Provenance& known) {
      return known.fact == Fact::kRank || known.fact == Fact::kLocalRank;
    });
    parent = Find(above.parent);
  }
}

void Attribution::FindRole(const Told& told, const ProcessInfo* parent, ProcessInfo& info) {
  info.role = ProcessRole::kLauncher;
  info.rank = info.local_rank = -1;
  info.task_rank = false;
  info.rank_by.clear();
  std::erase_if(info.provenance, [](const Provenance& known) {
    return known.fact == Fact::kRank || known.fact == Fact::kLocalRank ||
           known.fact == Fact::kWorldSize;
  });
  const bool launches = !LauncherIn(info.comm, info.command).empty();
  const bool slurms = IsSlurmsOwn(info.comm, info.command);
  const bool below_a_rank =
      parent != nullptr && parent->job_id == info.job_id &&
      (parent->role == ProcessRole::kRank || parent->role == ProcessRole::kWorker);
  // Its number is its parent's task's, so it may be that task's own child: a program that sets RANK
  // for what it spawns.
  const bool same_number = below_a_rank && told.rank() == parent->rank && !IsShell(parent->comm) &&
                           told.Int("WORLD_SIZE", parent->world_size) == parent->world_size;
  const bool has_rank =
      told.rank_keys() != nullptr && !told.only_task() && !IsPoolWorker(info.command);
  const bool tells_better =
      below_a_rank && parent->task_rank && ((has_rank && !same_number) || launches);
  if (below_a_rank && !tells_better) {
    info.role = ProcessRole::kWorker;
    info.rank = parent->rank;
    info.local_rank = parent->local_rank;
    info.world_size = parent->world_size;
    info.task_rank = parent->task_rank;
    info.rank_by = "its parent is rank " + std::to_string(parent->rank);
    Settle(info, Fact::kRank, {{info.rank_by, std::to_string(info.rank)}});
    return;
  }
  if (tells_better) WithdrawTaskRanks(parent);
  if (told.rank_keys() == nullptr || slurms || (told.only_task() && launches)) return;
  info.role = ProcessRole::kRank;
  info.rank = NumberOf(Settle(info, Fact::kRank, told.Of(Fact::kRank)));
  info.rank_by = told.rank_keys()->rank;
  info.task_rank = told.only_task();
  const RankKeyRow& keys = *told.rank_keys();
  Settle(info, Fact::kLocalRank, told.Of(Fact::kLocalRank));
  Settle(info, Fact::kWorldSize, told.Of(Fact::kWorldSize));
  if (!keys.local_rank.empty()) info.local_rank = told.Int(keys.local_rank, -1);
  if (!keys.world_size.empty()) info.world_size = told.Int(keys.world_size, 0);
}

bool Attribution::MayName(std::string_view job_id, uint32_t uid) const {
  const JobFacts* facts = FindJob(job_id);
  return facts == nullptr || !facts->by_cgroup || facts->uid == uid || uid == 0;
}

void Attribution::NoteJob(const Told& told, const ProcessInfo& info) {
  auto found = jobs_.find(info.job_id);
  if (found == jobs_.end()) {
    if (jobs_.size() >= kMaxJobs) return;
    found = jobs_.emplace(info.job_id, JobFacts{}).first;
    found->second.uid = info.uid;
  }
  JobFacts& facts = found->second;
  const bool by_cgroup = told.cgroup().job_id == info.job_id;
  // Slurm's own processes stand in a job's cgroup as root.
  const bool slurms = IsSlurmsOwn(info.comm, info.command) || info.step_id == "extern";
  if (by_cgroup && !facts.by_cgroup && !slurms) {
    const int64_t owner = told.cgroup().uid;
    facts = {};
    facts.uid = owner >= 0 ? static_cast<uint32_t>(owner) : info.uid;
    facts.by_cgroup = true;
  }
  if (facts.uid == info.uid) AddJobFacts(told, info, facts);
}

const ProcessInfo* Attribution::OnStart(const ProcessStart& start, std::string_view boot_id,
                                        Timestamp t) {
  withdrawn_.clear();
  const auto parent = processes_.find(start.parent);
  const ProcessInfo* parent_info = parent == processes_.end() ? nullptr : &parent->second;

  ProcessInfo info;
  if (const auto known = processes_.find(start.key); known != processes_.end())
    info = known->second;  // exec: facts anew
  const Told told(start);
  info.key = start.key;
  if (start.parent.pid != 0) info.parent = start.parent;
  info.uid = start.uid;
  info.comm = start.comm;
  if (!start.argv.empty()) info.command = JoinArguments(start.argv);
  if (info.started.ns == 0) info.started = t;
  info.slurm_restart = told.Int("SLURM_RESTART_COUNT", 0);
  info.elastic_restart = told.Int("TORCHELASTIC_RESTART_COUNT", 0);
  if (start.ns_pids.size() > 1 && start.ns_pids.back() != start.key.pid)
    info.inner_pid = start.ns_pids.back();

  FindJobOf(start, told, parent_info, boot_id, info);
  if (info.job_id.empty()) return nullptr;
  const bool fork_of_ours = parent_info != nullptr && parent_info->job_id == info.job_id;
  if (told.anything()) {
    TakeFacts(told, info);
  } else if (info.role == ProcessRole::kUnknown && fork_of_ours) {
    Inherit(*parent_info, info);
  }
  // A fork that is told of late says nothing new.
  if (told.anything() || info.role == ProcessRole::kUnknown) {
    FindRole(told, parent_info, info);
    if (const auto known = processes_.find(start.key); known != processes_.end())
      KeepRole(known->second, info);
  }
  if (told.anything()) {
    TakeLauncher(told, parent_info, info);
    NoteJob(told, info);
  }
  if (!processes_.contains(start.key) && !MakeRoom(start.uid)) return nullptr;
  return &Put(std::move(info));
}

const ProcessInfo* Attribution::OnExit(const ProcessExit& exit, Timestamp t) {
  const auto found = processes_.find(exit.key);
  if (found == processes_.end()) return nullptr;
  ProcessInfo& info = found->second;
  Unindex(info);
  if (info.alive) info.ended = t;
  info.alive = false;
  Index(info);
  if (exit.status_known && !info.status_known) {
    info.status_known = true;
    info.wait_status = exit.wait_status;
    info.core = exit.core;
  }
  return &info;
}

void Attribution::ForgetJob(std::string_view job_id) {
  if (const auto members = by_job_.find(job_id); members != by_job_.end()) {
    const std::set<ProcessKey> keys = members->second;
    for (const ProcessKey& key : keys) Erase(key);
  }
  if (const auto facts = jobs_.find(std::string(job_id)); facts != jobs_.end()) jobs_.erase(facts);
}

const JobFacts* Attribution::FindJob(std::string_view job_id) const {
  const auto found = jobs_.find(std::string(job_id));
  return found == jobs_.end() ? nullptr : &found->second;
}

const ProcessInfo* Attribution::Find(const ProcessKey& key) const {
  const auto found = processes_.find(key);
  return found == processes_.end() ? nullptr : &found->second;
}

const ProcessInfo* Attribution::FindPid(int32_t pid) const {
  const auto after = processes_.upper_bound(ProcessKey{pid, INT64_MAX});
  if (after == processes_.begin()) return nullptr;
  const auto last = std::prev(after);
  return last->first.pid == pid ? &last->second : nullptr;
}

std::vector<const ProcessInfo*> Attribution::OfJob(std::string_view job_id) const {
  std::vector<const ProcessInfo*> found;
  const auto members = by_job_.find(job_id);
  if (members == by_job_.end()) return found;
  for (const ProcessKey& key : members->second) found.push_back(&processes_.at(key));
  return found;
}

bool Attribution::MakeRoom(uint32_t uid) {
  if (processes_.size() < kMaxProcesses) return true;
  ++dropped_;
  // Who asks has one more, if he gets it.
  const auto own = by_user_.find(uid);
  const std::set<Place>* most = own == by_user_.end() ? nullptr : &own->second;
  size_t most_places = most == nullptr ? 1 : most->size() + 1;
  for (const auto& [user, places] : by_user_) {
    if (user == 0 || user == uid || places.size() <= most_places) continue;
    most = &places;
    most_places = places.size();
  }
  if (most == nullptr) return false;
  const bool others = own == by_user_.end() || most != &own->second;
  if (!most->begin()->alive) {
    Erase(ProcessKey(most->begin()->key));
  } else if (others) {
    Erase(ProcessKey(most->rbegin()->key));
  } else {
    return false;
  }
  return true;
}

ProcessInfo& Attribution::Put(ProcessInfo info) {
  const auto known = processes_.find(info.key);
  if (known != processes_.end()) Unindex(known->second);
  Index(info);
  return processes_[info.key] = std::move(info);
}

void Attribution::Erase(const ProcessKey& key) {
  const auto found = processes_.find(key);
  Unindex(found->second);
  shown_.erase(key);
  processes_.erase(found);
}

void Attribution::Index(const ProcessInfo& info) {
  by_user_[info.uid].insert({info.alive, info.alive ? info.started : info.ended, info.key});
  by_job_[info.job_id].insert(info.key);
}

void Attribution::Unindex(const ProcessInfo& info) {
  const auto places = by_user_.find(info.uid);
  places->second.erase({info.alive, info.alive ? info.started : info.ended, info.key});
  if (places->second.empty()) by_user_.erase(places);
  const auto members = by_job_.find(info.job_id);
  members->second.erase(info.key);
  if (members->second.empty()) by_job_.erase(members);
}

void Attribution::IndexAll() {
  by_user_.clear();
  by_job_.clear();
  // Of damaged bytes.
  std::erase_if(processes_, [](const auto& entry) { return entry.first != entry.second.key; });
  std::erase_if(shown_, [this](const auto& entry) { return !processes_.contains(entry.first); });
  for (const auto& [key, info] : processes_) Index(info);
}

}  // namespace rankscope::attribution
