// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/left_output.h"

#include <algorithm>
#include <utility>

#include "exporter/probes/stdio/output_rules.h"
#include "exporter/probes/stdio/standard_files.h"

namespace rankscope::probes {
namespace {

using attribution::ProcessInfo;
using attribution::ProcessRole;
using collectors::HeardFile;
using collectors::OutputFileId;

}  // namespace

LeftOutput::LeftOutput(std::string proc_root, const collectors::ProcessTable& table, Who who,
                       const collectors::HeardFiles& heard, int64_t wall_offset_ns, Hooks hooks)
    : proc_root_(std::move(proc_root)),
      table_(table),
      who_(std::move(who)),
      heard_(heard),
      wall_offset_ns_(wall_offset_ns),
      hooks_(std::move(hooks)) {}

void LeftOutput::Begin(exporter::EventLoop& loop, const std::set<std::string>& unheard) {
  unheard_ = !unheard.empty();
  std::vector<Round> rounds = unheard_ ? PlanUnheard(unheard) : Plan();
  if (rounds.empty()) return hooks_.on_end();
  workers_ = std::make_unique<exporter::UserWorkers>(loop);
  for (const Round& round : rounds) {
    ++jobs_[round.job_id].rounds;
    for (const File& file : round.files) awaited_.insert(file.heard.id);
  }
  for (Round& planned : rounds) {
    planned.budget = std::min(kMaxOfUser, kMaxBytes / static_cast<int64_t>(rounds.size()));
    auto round = std::make_shared<Round>(std::move(planned));
    const auto give_up = [this, job_id = round->job_id, ended = round->ended] {
      gave_up_ = true;
      if (!std::exchange(*ended, true)) EndRound(job_id, false);
    };
    const bool submitted = workers_->Submit(
        round->who,
        [this, round, root = proc_root_, offset = wall_offset_ns_]() -> std::function<void()> {
          Run(root, offset, *round);
          return [this, round] { OnRound(*round); };
        },
        kDeadline, give_up);
    if (!submitted) give_up();
  }
}

std::vector<LeftOutput::Round> LeftOutput::Plan() {
  std::map<std::string, std::vector<HeardFile>> files;
  for (HeardFile& file : heard_.All()) {
    // What others than ranks write alone may be copies of what ranks were heard to say elsewhere.
    if (file.ranked) files[file.job_id].push_back(std::move(file));
  }
  std::map<std::pair<std::string, exporter::UserIdentity>, Round> rounds;
  size_t looked = 0;
  for (const auto& [pid, tracked] : table_.processes()) {
    const ProcessInfo* const process = who_(tracked.key);
    if (process == nullptr || !files.contains(process->job_id)) continue;
    if (++looked > kMaxProcesses) {
      jobs_[process->job_id].complete = false;
      continue;
    }
    const auto who = exporter::ReadIdentity(proc_root_, tracked.key);
    if (!who) {
      jobs_[process->job_id].complete = false;
      continue;
    }
    Round& round = rounds[{process->job_id, *who}];
    round.job_id = process->job_id;
    round.who = *who;
    round.processes.push_back({tracked.key, process->role == ProcessRole::kRank,
                               process->role == ProcessRole::kWorker,
                               OutputRules::IsRelay(process->comm)});
  }
  std::vector<Round> all;
  for (auto& [key, round] : rounds) {
    const std::vector<HeardFile>& own = files[round.job_id];
    jobs_[round.job_id].files = own.size();
    for (const HeardFile& file : own) {
      round.files.emplace_back();
      round.files.back().heard = file;
    }
    all.push_back(std::move(round));
  }
  return all;
}

std::vector<LeftOutput::Round> LeftOutput::PlanUnheard(const std::set<std::string>& jobs) {
  std::map<std::pair<std::string, exporter::UserIdentity>, Round> rounds;
  size_t looked = 0;
  for (const auto& [pid, tracked] : table_.processes()) {
    const ProcessInfo* const process = who_(tracked.key);
    if (process == nullptr || !jobs.contains(process->job_id)) continue;
    Job& job = jobs_[process->job_id];
    const bool relay = OutputRules::IsRelay(process->comm);
    job.relayed = job.relayed || relay;
    const ProcessInfo* const parent = process->parent.pid > 0 ? who_(process->parent) : nullptr;
    const bool first = parent == nullptr || parent->job_id != process->job_id;
    const bool rank = process->role == ProcessRole::kRank;
    // What others write is a helper's, or inherited from these.
    if (!rank && !first) continue;
    const auto who = exporter::ReadIdentity(proc_root_, tracked.key);
    if (++looked > kMaxProcesses || !who) {
      job.complete = false;
      continue;
    }
    Round& round = rounds[{process->job_id, *who}];
    round.job_id = process->job_id;
    round.who = *who;
    round.unheard = true;
    round.processes.push_back({tracked.key, rank, false, relay, first});
  }
  std::vector<Round> all;
  for (auto& [key, round] : rounds) {
    // Who was there first knows best whether a file was made for the job.
    std::sort(round.processes.begin(), round.processes.end(), [](const Holder& a, const Holder& b) {
      return a.key.start_ticks < b.key.start_ticks;
    });
    all.push_back(std::move(round));
  }
  return all;
}

// On the user's thread.
void LeftOutput::Run(const std::string& proc_root, int64_t wall_offset_ns, Round& round) {
  for (const Holder& process : round.processes) {
    if (round.unheard) {
      LookUnheard(proc_root, process, round);
    } else {
      Look(proc_root, wall_offset_ns, process, round);
    }
  }
  for (File& file : round.files) {
    if (!file.file) continue;
    if (round.unheard) {
      ReadUnheard(round, file);
    } else {
      Read(round, file);
    }
  }
}

void LeftOutput::LookUnheard(const std::string& proc_root, const Holder& process, Round& round) {
  // What another user has open is closed to this one; to root it is not.
  if (exporter::ReadIdentity(proc_root, process.key) != round.who) {
    round.elsewhere = true;
    return;
  }
  std::vector<OutputFileId> open;
  for (const File& file : round.files) open.push_back(file.heard.id);
  collectors::OutputFiles files =
      collectors::FindOutputFiles(proc_root, process.key, {round.who, false}, open);
  for (collectors::FoundOutput& output : files.found) {
    auto known = std::find_if(round.files.begin(), round.files.end(),
                              [&](const File& file) { return file.heard.id == output.id; });
    if (known == round.files.end()) {
      known = round.files.emplace(round.files.end());
      known->heard.id = output.id;
      known->heard.job_id = round.job_id;
      known->file = std::move(output.file);
      known->begin = output.begin;
      // The job has written before it, or what it wrote is no longer there.
      known->torn = output.begin > 0 || output.position > output.size;
    }
    known->holders.emplace_back(process, output.descriptor);
  }
  if (!process.is_rank) return;
  round.elsewhere = round.elsewhere || files.elsewhere || files.closed || !files.refusal.empty();
  round.piped = round.piped || files.piped;
}

// All of it, or how it began and how it goes on.
void LeftOutput::ReadUnheard(Round& round, File& file) {
  const int64_t size = file.file->size();
  LeftText& text = file.text;
  text.begin = file.begin;
  const int64_t left = std::max<int64_t>(0, size - file.begin);
  int64_t most = left;
  if (left > std::min(kMaxOfFile, round.budget)) {
    const int64_t head = std::min(kKeptOfBegin, round.budget / 2);
    text.head = file.file->Read(file.begin, static_cast<size_t>(head));
    const size_t stop = text.head.find_last_of("\r\n");
    text.head.resize(stop == std::string::npos ? 0 : stop + 1);
    most = std::min(kKeptOfEnd, round.budget - head);
    text.begin = size - most;
    text.skipped = text.begin - file.begin - static_cast<int64_t>(text.head.size());
    round.budget -= head;
  }
  if (most > 0) text.bytes = file.file->Read(text.begin, static_cast<size_t>(most));
  round.budget -= most;
  if (static_cast<int64_t>(text.bytes.size()) != most) return;
  const auto is_binary = [](const std::string& bytes) {
    return bytes.find('\0') != std::string::npos;
  };
  if (is_binary(text.head) || is_binary(text.bytes)) return;
  file.read = true;
}

void LeftOutput::Look(const std::string& proc_root, int64_t wall_offset_ns, const Holder& process,
                      Round& round) {
  // What another user has open is closed to this one; to root it is not.
  if (exporter::ReadIdentity(proc_root, process.key) != round.who) return;
  std::vector<OutputFileId> open;
  for (const File& file : round.files) {
    if (file.file) open.push_back(file.heard.id);
  }
  const collectors::OutputFiles files =
      collectors::FindOutputFiles(proc_root, process.key, {round.who, false}, open);
  std::set<OutputFileId> found;
  for (const collectors::FoundOutput& output : files.found) {
    for (File& file : round.files) {
      if (file.heard.id != output.id) continue;
      found.insert(output.id);
      file.holders.emplace_back(process, output.descriptor);
      // One that was born since has only the number of the one that was heard.
      const bool same = output.born_ns <= file.heard.last.ns + wall_offset_ns;
      if (!file.file && output.file && same) file.file = output.file;
    }
  }
  if (!process.is_rank) return;
  const auto standard = ReadStandardFiles(process.key.pid);
  for (const int slot : {1, 2}) {
    if (!standard) break;
    const rs_file& file = standard->file[slot];
    if (file.inode == 0 || (file.mode & RS_FILE_NULL) != 0) continue;
    round.elsewhere = round.elsewhere || !found.contains(PlaceOf(file));
  }
  round.elsewhere = round.elsewhere || !standard;
}

void LeftOutput::Read(Round& round, File& file) {
  // What such a program has passed on was heard from those who said it.
  for (const auto& [holder, slot] : file.holders) {
    if (holder.is_relay) return;
  }
  const int64_t size = file.file->size();
  if (size < file.heard.end) return;  // cut short: another text
  LeftText& text = file.text;
  text.begin = file.heard.end;
  const int64_t left = size - text.begin;
  const int64_t most = left <= round.budget ? left : std::min(kKeptOfEnd, round.budget);
  text.skipped = left - most;
  text.begin += text.skipped;
  if (most > 0) text.bytes = file.file->Read(text.begin, static_cast<size_t>(most));
  round.budget -= most;
  if (static_cast<int64_t>(text.bytes.size()) != most) return;
  if (text.bytes.find('\0') != std::string::npos) return;  // binary
  file.read = true;
}

void LeftOutput::OnRound(Round& round) {
  if (round.unheard && *round.ended) return;  // given up: what is heard now has been told
  Job& job = jobs_[round.job_id];
  for (File& file : round.files) {
    const bool fresh = round.unheard ? file.read && taken_.insert(file.heard.id).second
                                     : file.read && awaited_.erase(file.heard.id) > 0;
    if (round.unheard && (!file.read || file.torn)) job.complete = false;
    if (!fresh) continue;
    if (!round.unheard) job.files -= std::min<size_t>(job.files, 1);
    job.of_first =
        job.of_first || std::any_of(file.holders.begin(), file.holders.end(),
                                    [](const auto& holder) { return holder.first.is_first; });
    TakeFile(round, file);
  }
  job.piped = job.piped || round.piped;
  if (!std::exchange(*round.ended, true)) EndRound(round.job_id, !round.elsewhere);
}

void LeftOutput::TakeFile(Round& round, File& file) {
  LeftText& text = file.text;
  text.job_id = file.heard.job_id;
  text.id = file.heard.id;
  size_t others = 0;
  for (const auto& [holder, slot] : file.holders) {
    if (holder.is_worker) continue;
    if (holder.is_rank && text.only.pid == 0) {
      text.only = holder.key;
      text.slot = slot;
    }
    if (text.only != holder.key) ++others;
  }
  if (text.only.pid == 0 && round.unheard) text.launcher = file.holders.front().first.key;
  if (others > 0) text.only = {};
  hooks_.on_text(std::move(text));
}

void LeftOutput::EndRound(const std::string& job_id, bool complete) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end() || found->second.rounds == 0) return;
  Job& job = found->second;
  job.complete = job.complete && complete;
  if (--job.rounds > 0) return;
  for (const HeardFile& file : heard_.All()) {
    if (file.job_id == job_id) awaited_.erase(file.id);
  }
  // What ranks write to pipes stands where it is passed on to, if that was read.
  const bool passed_on = !job.piped || (job.relayed && job.of_first);
  const bool all = unheard_ ? job.complete && passed_on
                            : job.complete && job.files == 0 && heard_.IsPlaced(job_id);
  jobs_.erase(found);
  if (all) hooks_.on_job(job_id);
  if (std::none_of(jobs_.begin(), jobs_.end(),
                   [](const auto& other) { return other.second.rounds > 0; })) {
    hooks_.on_end();
  }
}

}  // namespace rankscope::probes
