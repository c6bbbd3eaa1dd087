// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/stdout_tail.h"

#include <algorithm>
#include <utility>

#include "detectors/logs/masked_line.h"

namespace rankscope::collectors {
namespace {

using attribution::ProcessInfo;
using attribution::ProcessRole;

constexpr Duration kDeadline = Seconds(5);
// What may wait for a job to be known; the rest stays in the file.
constexpr size_t kMaxWaiting = 1 << 20;
// After passing over what was too much, this much of the end is read.
constexpr int64_t kKeptOfEnd = 256 << 10;

}  // namespace

StdoutTail::StdoutTail(std::string proc_root, std::shared_ptr<ProcessTable> table, Who who,
                       Duration interval)
    : proc_root_(std::move(proc_root)),
      table_(std::move(table)),
      who_(std::move(who)),
      interval_(interval) {}

StdoutTail::~StdoutTail() {
  Stop();
}

Status StdoutTail::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Poll(); });
  return {};
}

void StdoutTail::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  worker_.reset();
  files_.clear();
  looked_.clear();
  loop_ = nullptr;
}

void StdoutTail::CatchUp() {
  if (loop_ == nullptr) return;
  for (auto& [id, file] : files_) Tell(file);
}

void StdoutTail::Poll() {
  CatchUp();
  CloseAbandoned();
  if (worker_->pending() > 0) return;  // a file system is slow; nothing is lost by waiting
  auto round = std::make_shared<Round>(Plan());
  if (round->looks.empty() && round->reads.empty()) return;
  std::vector<OutputFileId> known;
  for (const auto& [id, file] : files_) known.push_back(id);
  const bool submitted = worker_->Submit(
      [this, round, known = std::move(known), root = proc_root_]() -> std::function<void()> {
        for (Look& look : round->looks) {
          look.found = FindOutputFiles(root, look.key, look.uid, known);
        }
        for (Read& read : round->reads) {
          read.size = read.file->size();
          // Cut short since: from its start again.
          if (read.size < read.offset) read.offset = 0;
          if (read.size - read.offset > kMaxBehind) read.offset = read.size - kKeptOfEnd;
          if (read.size > read.offset) read.bytes = read.file->Read(read.offset, kBlock);
        }
        return [this, round] { OnRound(std::move(*round)); };
      },
      kDeadline, {});
  static_cast<void>(submitted);
}

StdoutTail::Round StdoutTail::Plan() {
  Round round;
  const Timestamp now = loop_->Now();
  std::erase_if(looked_, [this](const auto& entry) {
    const TrackedProcess* const tracked = table_->Find(entry.first.pid);
    return tracked == nullptr || tracked->key != entry.first;
  });
  for (const auto& [pid, process] : table_->processes()) {
    const auto looked = looked_.find(process.key);
    if (looked != looked_.end() && now - looked->second < kLookAgain) continue;
    looked_[process.key] = now;
    round.looks.push_back({process.key, process.uid, {}});
  }
  for (auto& [id, file] : files_) {
    if (file.waiting.size() + kBlock > kMaxWaiting) continue;
    round.reads.push_back({id, file.file, file.offset, 0, {}});
  }
  return round;
}

void StdoutTail::OnRound(Round round) {
  if (loop_ == nullptr) return;
  for (Read& read : round.reads) OnRead(read);
  for (Look& look : round.looks) OnLook(look);
}

void StdoutTail::OnLook(Look& look) {
  const TrackedProcess* const tracked = table_->Find(look.key.pid);
  if (tracked == nullptr || tracked->key != look.key) return;
  for (FoundOutput& output : look.found) {
    auto known = files_.find(output.id);
    if (known == files_.end()) {
      if (!output.file || files_.size() >= kMaxFiles) continue;
      known = files_.try_emplace(output.id).first;
      known->second.file = std::move(output.file);
      Begin(known->second, output.begin);
    }
    File& file = known->second;
    file.writers.insert(look.key);
    file.slot.try_emplace(look.key, output.descriptor);
    file.last_writer = loop_->Now();
  }
}

void StdoutTail::Begin(File& file, int64_t offset) {
  file.stream = next_stream_++;
  file.offset = offset;
  file.lines = logs::LineAssembler(offset);
}

void StdoutTail::OnRead(Read& read) {
  const auto found = files_.find(read.id);
  if (found == files_.end()) return;
  File& file = found->second;
  file.at_end = read.offset + static_cast<int64_t>(read.bytes.size()) >= read.size;
  if (read.offset < file.offset) {
    Tell(file);
    Begin(file, 0);  // it was cut short: what comes now is another text
  }
  if (read.offset > file.offset) {
    Tell(file);
    // The lines that the gap begins and ends in are lost with it: half a number is another number.
    const size_t end = read.bytes.find('\n');
    const size_t spoilt = end == std::string::npos ? read.bytes.size() : end + 1;
    read.bytes.erase(0, spoilt);
    read.offset += static_cast<int64_t>(spoilt);
    const int64_t passed = read.offset - file.offset;
    lost_ += passed;
    file.lines.Lose(passed, [](const logs::AssembledLine&) {});
    file.offset = read.offset;
  }
  file.offset += static_cast<int64_t>(read.bytes.size());
  file.waiting += read.bytes;
  Tell(file);
}

// Whose the file is: of one rank alone, or of the job.
bool StdoutTail::LearnJob(File& file) {
  if (!file.job_id.empty()) return true;
  for (const ProcessKey& writer : file.writers) {
    const ProcessInfo* const process = who_(writer);
    if (process != nullptr && !process->job_id.empty()) file.job_id = process->job_id;
  }
  return !file.job_id.empty();
}

void StdoutTail::Tell(File& file) {
  if (file.waiting.empty() || !LearnJob(file)) return;
  const std::string bytes = std::exchange(file.waiting, {});
  file.lines.Feed(bytes, [&](const logs::AssembledLine& line) { Emit(file, line); });
}

void StdoutTail::Emit(const File& file, const logs::AssembledLine& assembled) {
  LogLine line;
  line.stream = file.stream;
  line.job_id = file.job_id;
  const ProcessInfo* only = nullptr;
  int slot = 0;
  bool shared = false;
  for (const ProcessKey& writer : file.writers) {
    const ProcessInfo* const process = who_(writer);
    if (process == nullptr || process->role == ProcessRole::kWorker) continue;
    shared = shared || only != nullptr || process->role != ProcessRole::kRank;
    only = process;
    slot = file.slot.at(writer);
  }
  std::string name = "output file";
  if (only != nullptr && !shared) {
    line.rank = only->rank;
    line.local_rank = only->local_rank;
    line.restart = only->elastic_restart;
    line.writer = only->key;
    name = "rank " + std::to_string(only->rank) + (slot == 2 ? " stderr file" : " stdout file");
  }
  line.stream_name = name;
  logs::FillLine(assembled, line, masked_);
  Observation observation;
  observation.t = loop_->Now();
  observation.kind = line;
  sink_->Accept(observation);
}

// Of whom nobody is left, and that was read to its end.
void StdoutTail::CloseAbandoned() {
  const Timestamp now = loop_->Now();
  for (auto it = files_.begin(); it != files_.end();) {
    File& file = it->second;
    const bool held =
        std::any_of(file.writers.begin(), file.writers.end(), [this](const auto& key) {
          const TrackedProcess* const tracked = table_->Find(key.pid);
          return tracked != nullptr && tracked->key == key;
        });
    if (held) file.last_writer = now;
    const bool done =
        !held && file.at_end && file.waiting.empty() && now - file.last_writer > Seconds(1);
    if (done || now - file.last_writer > kAfterEnd) {
      if (!file.job_id.empty()) {
        file.lines.Flush(LineEnd::kClosed,
                         [&](const logs::AssembledLine& line) { Emit(file, line); });
      }
      it = files_.erase(it);
    } else {
      ++it;
    }
  }
}

}  // namespace rankscope::collectors
