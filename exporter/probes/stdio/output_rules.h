// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether what a process writes to a standard stream is the job's output. Not every standard stream
// is: a compiler's goes to the rank that started it, `tee` writes what it has read from a rank, and
// descriptor 1 may be a checkpoint. Decided by who writes and which file it is:
//
//   rank       its standard output and error, wherever they lead, unless they are binary
//   worker     (below a rank) the same file as its rank's: inherited. A pipe of its own is read by
//              the rank that started it and is none of the job's output
//   launcher   (everybody else) the same file as the first of the job's processes; not, when it
//              reads what a rank writes (`| tee`): these bytes are heard already
//   wrapper    what `rankscope run` has given to its command as standard output is heard there
//
// Pure but for the two questions it is built with. Loop thread only.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "bpf/events/stdio.h"
#include "detectors/attribution/attribution.h"
#include "detectors/model/ids.h"

namespace rankscope::probes {

struct FileId {
  uint64_t inode = 0;
  uint32_t device = 0;
  auto operator<=>(const FileId&) const = default;
};
FileId IdOf(const rs_file& file);

// A first piece of text, and what the kernel says of it.
struct Written {
  ProcessKey writer;
  rs_file file{};
  rs_file input{};  // the writer's standard input
  std::string_view text;
  bool first_look = true;
};

class OutputRules {
 public:
  enum class Answer : uint8_t {
    kLater,   // nobody knows yet whose the process is
    kOutput,  // of the job
    kNot,
  };

  // A process as the engine sees it; null: of no job.
  using Who = std::function<const attribution::ProcessInfo*(const ProcessKey& key)>;
  // Descriptors 0 to 2 that a process was started with.
  using StandardOf = std::function<std::optional<rs_standard>(int32_t pid)>;

  OutputRules(Who who, StandardOf standard_of)
      : who_(std::move(who)), standard_of_(std::move(standard_of)) {}

  Answer Decide(const Written& written);

  // Programs that print what tasks elsewhere have said; only lines that begin with their own name
  // are theirs.
  static bool IsRelay(std::string_view comm);
  // Whether a line that `relay` writes is its own, or of Slurm's daemon of a step, which has no
  // other way to say why it ends one; what ranks say is heard from them. Empty: no relay.
  static bool IsOwnWord(std::string_view relay, std::string_view line);

  // The command of a wrapper; asks at once what it was started with, for it may end before its
  // children.
  void NoteWrapped(const ProcessKey& root);
  // Whether it was noted, with its files or without.
  bool KnowsWrapped(const ProcessKey& root) const { return wrapped_.contains(root); }
  // Forgets the files of all other jobs.
  void KeepJobs(const std::set<std::string>& jobs) {
    std::erase_if(files_, [&jobs](const auto& entry) { return !jobs.contains(entry.first); });
  }

 private:
  using Info = attribution::ProcessInfo;

  const Info* ParentOf(const Info& process) const;
  const Info* RankAbove(const Info& worker) const;
  const Info& TopOf(const Info& process) const;
  bool StartedWith(const Info& process, const rs_file& file) const;
  bool IsHeardByWrapper(const Info& process, const rs_file& file) const;
  Answer DecideLauncher(const Info& process, const Written& written) const;
  bool IsRanksFile(const std::string& job_id, const rs_file& file) const;
  void NoteRanksFile(const std::string& job_id, const rs_file& file);

  Who who_;
  StandardOf standard_of_;
  // What ranks of a job have written to; some per rank and restart.
  static constexpr size_t kMaxFiles = 4096;
  std::map<std::string, std::set<FileId>> files_;
  // As many as collectors::ProcessTable remembers.
  static constexpr size_t kMaxWrapped = 256;
  std::map<ProcessKey, std::optional<rs_standard>> wrapped_;
};

}  // namespace rankscope::probes
