// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What jobs have written to regular files while nobody heard them: each file that was heard before
// is found again as the output of a process that lives, by a thread with the rights of that
// process's user, and read on from where hearing has stopped. Bounded in bytes and processes.
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
  int64_t begin = 0;    // of `bytes` in the file
  int64_t skipped = 0;  // bytes before them for which there was no room
  std::string bytes;
  ProcessKey only;  // whose file alone it is; pid 0 = several write to it, or a launcher
  int slot = 1;     // then: its standard output or error
};

class LeftOutput {
 public:
  // Of all files of a job's processes of one user, and of all; a file of which more is left is read
  // from its end.
  static constexpr int64_t kMaxOfUser = 4 << 20;
  static constexpr int64_t kMaxBytes = 32 << 20;
  static constexpr int64_t kKeptOfEnd = 256 << 10;
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

  // Once. What is called back must not end this object.
  void Begin(exporter::EventLoop& loop);

  // Whether this file is not read yet: what is heard of it has to wait.
  bool Awaits(const collectors::OutputFileId& id) const { return awaited_.contains(id); }

 private:
  struct Holder {
    ProcessKey key;
    bool is_rank = false;
    bool is_worker = false;
    bool is_relay = false;
  };
  struct File {
    collectors::HeardFile heard;
    std::shared_ptr<collectors::OutputFile> file;  // on the user's thread, as all that follows
    std::vector<std::pair<Holder, int>> holders;   // with the slot
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
    bool elsewhere = false;  // a rank writes to what is none of these
    std::shared_ptr<bool> ended = std::make_shared<bool>(false);  // or given up; the loop's
  };
  struct Job {
    size_t rounds = 0;
    size_t files = 0;
    bool complete = true;
  };

  std::vector<Round> Plan();
  static void Run(const std::string& proc_root, int64_t wall_offset_ns, Round& round);
  static void Look(const std::string& proc_root, int64_t wall_offset_ns, const Holder& process,
                   Round& round);
  static void Read(Round& round, File& file);
  void OnRound(Round& round);
  void EndRound(const std::string& job_id, bool complete);

  std::string proc_root_;
  const collectors::ProcessTable& table_;
  Who who_;
  const collectors::HeardFiles& heard_;
  int64_t wall_offset_ns_;
  Hooks hooks_;
  std::set<collectors::OutputFileId> awaited_;
  std::map<std::string, Job> jobs_;  // whose rounds are under way
  std::unique_ptr<exporter::UserWorkers> workers_;
};

}  // namespace rankscope::probes
