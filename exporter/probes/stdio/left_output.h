// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What jobs have written to regular files while nobody heard them. Of a job that was heard before,
// each file is found again as the output of a process that lives and read on from where hearing has
// stopped. Of a job that nobody has heard, because it began before any daemon did, the files are
// those that its ranks and its first process write to, read from their beginning:
//
//   rank's or first process's   regular file     read; of one that is large, its begin and its end
//   standard output or error    appended to      read if it was made for this job; else from where
//                                                the job has come to, for what stands before may
//                                                be another run's
//                               pipe             nothing can be read back; where Slurm's srun
//                               passes
//                                                it on, it stands in the first process's file
//                               anything else    nothing can be read back
//
// Found and read by a thread with the rights of the process's user. Bounded in bytes and processes.
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_workers.h"
#include "exporter/output/heard_files.h"
#include "exporter/processes/process_table.h"

namespace rankscope::probes {

// A file's text from where hearing has stopped.
struct LeftText {
  std::string job_id;
  collectors::OutputFileId id;
  std::string head;     // whole lines of the begin of a file of which not all is read
  int64_t begin = 0;    // of `bytes` in the file
  int64_t skipped = 0;  // bytes before them for which there was no room
  std::string bytes;
  ProcessKey only;      // whose file alone it is; pid 0 = several write to it, or a launcher
  int slot = 1;         // then: its standard output or error
  ProcessKey launcher;  // no rank writes to it: what ranks say may stand here again
};

class LeftOutput {
 public:
  // Of all files of a job's processes of one user, and of all; a file of which more is left is read
  // from its end.
  static constexpr int64_t kMaxOfUser = 4 << 20;
  static constexpr int64_t kMaxBytes = 32 << 20;
  static constexpr int64_t kKeptOfEnd = 256 << 10;
  // Of a file that nobody has heard, if there is more: how it began says what the program is and
  // what it started with. The loop parses a megabyte in some 0.1 s.
  static constexpr int64_t kKeptOfBegin = 256 << 10;
  static constexpr int64_t kMaxOfFile = 1 << 20;
  // Processes whose files are looked at: 20 us each on the loop.
  static constexpr size_t kMaxProcesses = 1024;
  static constexpr Duration kDeadline = Seconds(2);

  using Who = std::function<const attribution::ProcessInfo*(const ProcessKey& key)>;
  struct Hooks {
    std::function<void(LeftText text)> on_text;  // of one file
    // All that the job has written is told, as far as can be seen: it writes to these files only.
    std::function<void(const std::string& job_id)> on_job;
    // Nothing is waited for any more.
    std::function<void()> on_end;
  };

  LeftOutput(std::string proc_root, const collectors::ProcessTable& table, Who who,
             const collectors::HeardFiles& heard, int64_t wall_offset_ns, Hooks hooks);

  // Once. What is called back must not end this object. `unheard`: jobs that nobody has heard,
  // which are read from the begin of their files; empty: those that were heard are.
  void Begin(exporter::EventLoop& loop, const std::set<std::string>& unheard = {});

  // Whether this file is not read yet: what is heard of it has to wait.
  bool Awaits(const collectors::OutputFileId& id) const { return awaited_.contains(id); }

  // A thread of it does not come back: it is not to be destroyed in passing.
  bool gave_up() const { return gave_up_; }

 private:
  struct Holder {
    ProcessKey key;
    bool is_rank = false;
    bool is_worker = false;
    bool is_relay = false;
    bool is_first = false;  // no other process of the job has started it
  };
  struct File {
    collectors::HeardFile heard;
    std::shared_ptr<collectors::OutputFile> file;  // on the user's thread, as all that follows
    std::vector<std::pair<Holder, int>> holders;   // with the slot
    // Of one that nobody has heard: where the job's text begins, and whether a part of it is
    // missing.
    int64_t begin = 0;
    bool torn = false;
    bool read = false;
    LeftText text;
  };
  // The files and processes of one job and user.
  struct Round {
    std::string job_id;
    exporter::UserIdentity who;
    std::vector<Holder> processes;
    std::vector<File> files;
    int64_t budget = 0;
    bool unheard = false;    // the files are not known yet
    bool elsewhere = false;  // a rank writes to what is none of these
    bool piped = false;      // a rank writes to a pipe
    std::shared_ptr<bool> ended = std::make_shared<bool>(false);  // or given up; the loop's
  };
  struct Job {
    size_t rounds = 0;
    size_t files = 0;
    bool complete = true;
    // Of one that nobody has heard:
    bool piped = false;     // a rank writes to a pipe
    bool relayed = false;   // a program of Slurm's passes on what ranks write
    bool of_first = false;  // a file that the first process writes to was read
  };

  std::vector<Round> Plan();
  std::vector<Round> PlanUnheard(const std::set<std::string>& jobs);
  static void Run(const std::string& proc_root, int64_t wall_offset_ns, Round& round);
  static void Look(const std::string& proc_root, int64_t wall_offset_ns, const Holder& process,
                   Round& round);
  static void LookUnheard(const std::string& proc_root, const Holder& process, Round& round);
  static void Read(Round& round, File& file);
  static void ReadUnheard(Round& round, File& file);
  void OnRound(Round& round);
  void TakeFile(Round& round, File& file);
  void EndRound(const std::string& job_id, bool complete);

  std::string proc_root_;
  const collectors::ProcessTable& table_;
  Who who_;
  const collectors::HeardFiles& heard_;
  int64_t wall_offset_ns_;
  Hooks hooks_;
  std::set<collectors::OutputFileId> awaited_;
  std::set<collectors::OutputFileId> taken_;  // of jobs that nobody has heard
  std::map<std::string, Job> jobs_;           // whose rounds are under way
  bool gave_up_ = false;
  bool unheard_ = false;  // they are jobs that nobody has heard
  std::unique_ptr<exporter::UserWorkers> workers_;
};

}  // namespace rankscope::probes
