// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that reads a job's output where it lies: the regular files that its processes have as
// standard output and error, usually the scheduler's StdOut file. For nodes where the kernel does
// not let us hear the writes themselves, or that will not pay for it. Pipes, terminals and sockets
// stay unheard, and who wrote a line is known only of a file that one rank has for itself. Loop
// thread only; the files of each user are found and read by a thread with his rights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/logs/text/assembler.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_workers.h"
#include "exporter/output/heard_files.h"
#include "exporter/output/output_file.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::collectors {

class StdoutTail final : public exporter::Source {
 public:
  // Files at once, of all users and of one; each holds a line of 64 KiB at worst. When there is no
  // more room, who has most gives one up.
  static constexpr size_t kMaxFiles = 512;
  static constexpr size_t kMaxFilesOfUser = 256;
  // Of one file per round, of four rounds a second; what waits beyond kMaxBehind is passed over,
  // and counted.
  static constexpr size_t kBlock = 64 << 10;
  static constexpr int64_t kMaxBehind = 4 << 20;
  // Before that, of a file that was there before it was found: how it began says what the program
  // is.
  static constexpr int64_t kKeptOfBegin = 256 << 10;
  // Of one user's files per round: 4 MB/s. Of all users', what the loop can parse beside its work.
  static constexpr size_t kMaxRoundOfUser = 1 << 20;
  static constexpr size_t kMaxRound = 4 << 20;
  // The descriptors of a process are looked at again, for it may have put another file in place.
  static constexpr Duration kLookAgain = Seconds(2);
  // How long a file whose processes have gone is read until its end is met: they may have left more
  // than a block, and a file system may hang. What is given up is counted, and told of its job.
  static constexpr Duration kAfterEnd = Seconds(30);
  // Above those of the kernel's source.
  static constexpr uint32_t kFirstStream = 1 << 24;

  using Who = std::function<const attribution::ProcessInfo*(const ProcessKey& key)>;

  StdoutTail(std::string proc_root, std::shared_ptr<ProcessTable> table, Who who,
             Duration interval);
  ~StdoutTail() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return lost_; }

  // What was heard before of the files, by an earlier daemon or by the kernel's source: they are
  // read on from there. `wall_offset_ns`: of the wall clock above CLOCK_MONOTONIC.
  void GoOnAfter(std::shared_ptr<const HeardFiles> heard, int64_t wall_offset_ns);

  // Tells what was read of jobs that were not known when it was.
  void CatchUp();

 private:
  using UserIdentity = exporter::UserIdentity;
  // Each user has his own view of a file that several write.
  struct FileKey {
    uint32_t uid = 0;
    OutputFileId id;
    auto operator<=>(const FileKey&) const = default;
  };
  struct File {
    std::shared_ptr<OutputFile> file;
    OutputFileId id;
    UserIdentity who;
    uint32_t stream = 0;
    std::string job_id;              // empty: not known yet
    std::set<ProcessKey> writers;    // that have it as standard output or error
    std::map<ProcessKey, int> slot;  // 1 or 2
    int64_t offset = 0;              // of the file
    int64_t size = 0;                // as last seen
    std::string waiting;             // read, and not told: the job is not known
    logs::LineAssembler lines;
    Timestamp last_writer;
    Timestamp begun;    // as the text that it is now
    bool over = false;  // read to its end after the last of its processes had gone
    // Up to here it was written before it was found: that it is read at once tells no time.
    int64_t past_end = 0;
    Timestamp written;  // when it had been written last, as it was found; 0 = not known
    bool past_told = false;
    int64_t head_end = 0;  // up to here nothing is passed over
    bool torn = false;     // of what the job wrote to it before a part is missing
  };
  struct Process {
    Timestamp looked;
    Timestamp lived;       // when it was in the table last
    bool looking = false;  // a thread looks for its files
    std::string job_id;    // empty: not known yet
    std::optional<UserIdentity> who;
    std::string refusal;  // why a file of it is not read
    bool looked_at = false;
    bool elsewhere = false;  // it writes to what cannot be read
  };
  struct Read {
    FileKey key;
    std::shared_ptr<OutputFile> file;
    int64_t offset = 0;
    int64_t size = 0;
    size_t most = 0;
    int64_t head_end = 0;
    bool after = false;  // its processes had gone before it began
    bool done = false;   // its turn came
    std::string bytes;
  };
  struct Look {
    ProcessKey key;
    bool all_roots = false;
    bool other_user = false;  // it has changed its ids since
    OutputFiles files;
  };
  struct Round {
    UserIdentity who;
    std::vector<OutputFileId> known;
    std::vector<Look> looks;
    std::vector<Read> reads;
    size_t budget = 0;  // bytes
  };
  using Rounds = std::map<UserIdentity, Round>;

  void Poll();
  Rounds Plan();
  void PlanLooks(Rounds& rounds);
  void PlanReads(Rounds& rounds);
  bool AllRoots(const TrackedProcess& process) const;
  void Submit(Round round);
  static void Run(const std::string& proc_root, Round& round);
  void OnRound(Round round);
  void OnLook(const UserIdentity& who, Look& look);
  void OnRead(Read& read);
  bool MakeRoom(uint32_t uid);
  void Begin(File& file, int64_t offset);
  // `earlier`: the process was there before this source.
  void BeginFound(File& file, const FoundOutput& output, bool earlier);
  bool LearnJob(File& file);
  void LearnJob(const ProcessKey& key, Process& process) const;
  void Tell(File& file);
  void Emit(const File& file, const logs::AssembledLine& assembled);
  // Tells of jobs that were there before this source that what they had written was read.
  void TellRead();
  void CloseAbandoned();
  bool IsHeld(const File& file) const;
  void Close(File& file);
  // Tells of each job whether files of it are still to be read.
  void TellFollowed();
  void EndFollowed(const std::string& job_id);
  // Why files are not read, by user.
  std::map<uint32_t, std::set<std::string>> Troubles() const;
  void TellTroubles();

  std::string proc_root_;
  std::shared_ptr<ProcessTable> table_;
  Who who_;
  Duration interval_;
  exporter::EventLoop::TimerId timer_ = 0;
  std::unique_ptr<exporter::UserWorkers> workers_;
  std::map<FileKey, File> files_;
  std::map<ProcessKey, Process> processes_;
  std::set<UserIdentity> busy_;              // a round of theirs is under way
  std::set<uint32_t> late_;                  // users whose round does not return
  std::map<uint32_t, std::string> unread_;   // why no file of this user is read now
  size_t turn_ = 0;                          // with which of its files a user's round begins
  std::string told_;                         // the reason that was told last
  std::shared_ptr<const HeardFiles> heard_;  // null: nothing
  int64_t wall_offset_ns_ = 0;
  uint32_t next_stream_ = kFirstStream;
  int64_t began_ticks_ = 0;             // when this source did, as processes count their start
  std::set<std::string> heard_before_;  // jobs that an earlier daemon has heard
  std::set<std::string> read_;          // jobs that TellRead is through with
  std::set<std::string> followed_;      // jobs of which was told that files are to be read
  std::set<std::string> given_up_;      // of them, those with a file whose end was not met
  int64_t lost_ = 0;
  std::string masked_;
};

}  // namespace rankscope::collectors
