// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that reads a job's output where it lies: the regular files that its processes have as
// standard output and error, usually the scheduler's StdOut file. For nodes where the kernel does
// not let us hear the writes themselves, or that will not pay for it. Pipes, terminals and sockets
// stay unheard, and who wrote a line is known only of a file that one rank has for itself. Loop
// thread only; files are found and read by a worker.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/logs/assembler.h"
#include "exporter/collectors/output_file.h"
#include "exporter/collectors/process_table.h"
#include "exporter/event_loop.h"
#include "exporter/source.h"
#include "exporter/worker.h"

namespace rankscope::collectors {

class StdoutTail final : public exporter::Source {
 public:
  // Files at once; each holds a line of 64 KiB at worst.
  static constexpr size_t kMaxFiles = 256;
  // Of one file per round, of four rounds a second; what waits beyond kMaxBehind is passed over,
  // and counted.
  static constexpr size_t kBlock = 64 << 10;
  static constexpr int64_t kMaxBehind = 4 << 20;
  // The descriptors of a process are looked at again, for it may have put another file in place.
  static constexpr Duration kLookAgain = Seconds(2);
  // How long a file whose processes have gone is still read: they may have left more than a block.
  static constexpr Duration kAfterEnd = Seconds(5);
  // Above those of the kernel's source.
  static constexpr uint32_t kFirstStream = 1 << 24;

  using Who = std::function<const attribution::ProcessInfo*(const ProcessKey& key)>;

  StdoutTail(std::string proc_root, std::shared_ptr<ProcessTable> table, Who who,
             Duration interval);
  ~StdoutTail() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override { return lost_; }

  // Tells what was read of jobs that were not known when it was.
  void CatchUp();

 private:
  struct File {
    std::shared_ptr<OutputFile> file;
    uint32_t stream = 0;
    std::string job_id;              // empty: not known yet
    std::set<ProcessKey> writers;    // that have it as standard output or error
    std::map<ProcessKey, int> slot;  // 1 or 2
    int64_t offset = 0;              // of the file
    std::string waiting;             // read, and not told: the job is not known
    logs::LineAssembler lines;
    Timestamp last_writer;
    bool at_end = false;
  };
  struct Read {
    OutputFileId id;
    std::shared_ptr<OutputFile> file;
    int64_t offset = 0;
    int64_t size = 0;
    std::string bytes;
  };
  struct Look {
    ProcessKey key;
    uint32_t uid = 0;
    std::vector<FoundOutput> found;
  };
  struct Round {
    std::vector<Look> looks;
    std::vector<Read> reads;
  };

  void Poll();
  Round Plan();
  void OnRound(Round round);
  void OnLook(Look& look);
  void OnRead(Read& read);
  void Begin(File& file, int64_t offset);
  bool LearnJob(File& file);
  void Tell(File& file);
  void Emit(const File& file, const logs::AssembledLine& assembled);
  void CloseAbandoned();

  std::string proc_root_;
  std::shared_ptr<ProcessTable> table_;
  Who who_;
  Duration interval_;
  exporter::EventLoop* loop_ = nullptr;
  Sink* sink_ = nullptr;
  exporter::EventLoop::TimerId timer_ = 0;
  std::unique_ptr<exporter::Worker> worker_;
  std::map<OutputFileId, File> files_;
  std::map<ProcessKey, Timestamp> looked_;
  uint32_t next_stream_ = kFirstStream;
  int64_t lost_ = 0;
  std::string masked_;
};

}  // namespace rankscope::collectors
