// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/output_rules.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

namespace rankscope::probes {
namespace {

using attribution::ProcessInfo;
using attribution::ProcessRole;

// Process trees of jobs are shallow; a damaged chain ends here.
constexpr int kMostAncestors = 64;

constexpr std::array<std::string_view, 3> kRelays = {"srun", "slurmstepd", "sattach"};

// A text file has none in its first bytes; archives, tensors and compressed data do.
bool IsBinary(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

bool IsNull(const rs_file& file) {
  return (file.mode & RS_FILE_NULL) != 0;
}

bool IsPipe(const rs_file& file) {
  return file.inode != 0 && (S_ISFIFO(file.mode & S_IFMT) || S_ISSOCK(file.mode & S_IFMT));
}

}  // namespace

FileId IdOf(const rs_file& file) {
  return {file.inode, file.device};
}

OutputRules::Answer OutputRules::Decide(const Written& written) {
  const ProcessInfo* const process = who_(written.writer);
  if (process == nullptr || process->job_id.empty()) return Answer::kLater;
  if (IsBinary(written.text) || IsHeardByWrapper(*process, written.file)) return Answer::kNot;
  switch (process->role) {
    case ProcessRole::kRank:
      if (!IsNull(written.file)) NoteRanksFile(process->job_id, written.file);
      return Answer::kOutput;
    case ProcessRole::kWorker: {
      if (IsNull(written.file)) return Answer::kNot;
      const ProcessInfo* const rank = RankAbove(*process);
      const bool inherited = rank != nullptr && StartedWith(*rank, written.file);
      return inherited || IsRanksFile(process->job_id, written.file) ? Answer::kOutput
                                                                     : Answer::kNot;
    }
    case ProcessRole::kLauncher:
    case ProcessRole::kUnknown:
      return DecideLauncher(*process, written);
  }
  return Answer::kNot;
}

bool OutputRules::IsRelay(std::string_view comm) {
  return std::find(kRelays.begin(), kRelays.end(), comm) != kRelays.end();
}

bool OutputRules::IsOwnWord(std::string_view relay, std::string_view line) {
  return line.starts_with(relay) || line.starts_with("slurmstepd");
}

OutputRules::Answer OutputRules::DecideLauncher(const Info& process, const Written& written) const {
  if (IsPipe(written.input)) {
    // It may have been quicker to pass on what it read than the rank to return from its write.
    if (written.first_look) return Answer::kLater;
    if (IsRanksFile(process.job_id, written.input)) return Answer::kNot;
  }
  const ProcessInfo& top = TopOf(process);
  if (IsNull(written.file) && top.key != process.key) return Answer::kNot;
  if (StartedWith(top, written.file)) return Answer::kOutput;
  // A job that is cancelled ends all at once: srun says why and is gone with the script above it
  // before anybody can ask /proc where they wrote. Of what srun starts nothing else is its own.
  const bool gone = !standard_of_(top.key.pid) && !standard_of_(process.key.pid);
  return gone && IsRelay(process.comm) && !IsNull(written.file) ? Answer::kOutput : Answer::kNot;
}

void OutputRules::NoteWrapped(const ProcessKey& root) {
  const auto known = wrapped_.find(root);
  if (known != wrapped_.end() && known->second) return;
  if (known == wrapped_.end() && wrapped_.size() >= kMaxWrapped) wrapped_.erase(wrapped_.begin());
  wrapped_[root] = standard_of_(root.pid);
}

const ProcessInfo* OutputRules::ParentOf(const Info& process) const {
  const ProcessInfo* const parent = process.parent.pid > 0 ? who_(process.parent) : nullptr;
  return parent != nullptr && parent->job_id == process.job_id ? parent : nullptr;
}

const ProcessInfo* OutputRules::RankAbove(const Info& worker) const {
  const ProcessInfo* process = &worker;
  for (int i = 0; i < kMostAncestors && process != nullptr; ++i) {
    if (process->role == ProcessRole::kRank) return process;
    process = ParentOf(*process);
  }
  return nullptr;
}

// The first of the job's processes that still lives, on the way up from this one.
const ProcessInfo& OutputRules::TopOf(const Info& process) const {
  const ProcessInfo* top = &process;
  const ProcessInfo* next = &process;
  for (int i = 0; i < kMostAncestors && next != nullptr; ++i) {
    if (next->alive) top = next;
    next = ParentOf(*next);
  }
  return *top;
}

bool OutputRules::StartedWith(const Info& process, const rs_file& file) const {
  const auto standard = standard_of_(process.key.pid);
  return standard &&
         (IdOf(standard->file[1]) == IdOf(file) || IdOf(standard->file[2]) == IdOf(file));
}

bool OutputRules::IsHeardByWrapper(const Info& process, const rs_file& file) const {
  const ProcessInfo* next = &process;
  for (int i = 0; i < kMostAncestors && next != nullptr; ++i) {
    const auto wrapped = wrapped_.find(next->key);
    if (wrapped != wrapped_.end()) {
      const auto& standard = wrapped->second;
      // Of a command that has ended unseen: what cannot be told from the wrapper's is the
      // wrapper's.
      if (!standard) return !S_ISREG(file.mode & S_IFMT);
      return IdOf(standard->file[1]) == IdOf(file) || IdOf(standard->file[2]) == IdOf(file);
    }
    next = ParentOf(*next);
  }
  return false;
}

bool OutputRules::IsRanksFile(const std::string& job_id, const rs_file& file) const {
  const auto files = files_.find(job_id);
  return files != files_.end() && files->second.contains(IdOf(file));
}

void OutputRules::NoteRanksFile(const std::string& job_id, const rs_file& file) {
  std::set<FileId>& files = files_[job_id];
  if (files.size() < kMaxFiles) files.insert(IdOf(file));
}

}  // namespace rankscope::probes
