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

void LeftOutput::Begin(exporter::EventLoop& loop) {
  std::vector<Round> rounds = Plan();
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

// On the user's thread.
void LeftOutput::Run(const std::string& proc_root, int64_t wall_offset_ns, Round& round) {
  for (const Holder& process : round.processes) Look(proc_root, wall_offset_ns, process, round);
  for (File& file : round.files) {
    if (file.file) Read(round, file);
  }
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
  size_t read = 0;
  for (File& file : round.files) {
    if (!file.read || awaited_.erase(file.heard.id) == 0) continue;
    ++read;
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
    if (others > 0) text.only = {};
    hooks_.on_text(std::move(text));
  }
  const auto job = jobs_.find(round.job_id);
  if (job != jobs_.end()) job->second.files -= std::min(job->second.files, read);
  if (!std::exchange(*round.ended, true)) EndRound(round.job_id, !round.elsewhere);
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
  const bool all = job.complete && job.files == 0 && heard_.IsPlaced(job_id);
  jobs_.erase(found);
  if (all) hooks_.on_job(job_id);
  if (std::none_of(jobs_.begin(), jobs_.end(),
                   [](const auto& other) { return other.second.rounds > 0; })) {
    hooks_.on_end();
  }
}

}  // namespace rankscope::probes
