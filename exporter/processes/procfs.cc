// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/procfs.h"

#include <utility>

namespace rankscope::collectors {
namespace {

// A scan of 4096 processes takes below 100 ms; beyond this a process holds its own memory map and
// /proc waits for it.
constexpr Duration kScanDeadline = Seconds(5);

}  // namespace

Procfs::Procfs(ProcReader reader, std::shared_ptr<ProcessTable> table, Duration interval)
    : reader_(std::move(reader)), table_(std::move(table)), interval_(interval) {}

Procfs::~Procfs() {
  Stop();
}

Status Procfs::Start(exporter::EventLoop& loop, Sink& sink) {
  if (reader_.Pids().empty()) {
    return Error{"procfs: /proc shows no process; mount it without hidepid"};
  }
  loop_ = &loop;
  sink_ = &sink;
  scanner_ = std::make_shared<ProcScanner>(reader_);
  worker_ = std::make_unique<exporter::Worker>(loop);
  timer_ = loop.Every(interval_, [this] { Scan(); });
  Scan();
  return {};
}

void Procfs::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_.reset();
  loop_ = nullptr;
}

int64_t Procfs::lost() const {
  return table_->dropped() + unseen_;
}

void Procfs::Scan() {
  if (worker_->pending() > 0) return;  // the last one is still reading
  ScanRequest request;
  request.asked = table_->TakeAsked();
  request.tracked.reserve(table_->processes().size());
  for (const auto& [pid, process] : table_->processes()) request.tracked.push_back(process);
  const bool submitted = worker_->Submit(
      [this, scanner = scanner_, request = std::move(request)]() -> std::function<void()> {
        return [this, result = scanner->Scan(request)]() mutable { Apply(std::move(result)); };
      },
      kScanDeadline,
      [this] {
        late_ = true;
        TellState(
            Availability::kDown,
            "a read of /proc does not return: a process is stuck in the kernel and holds the lock "
            "of its memory map; find it in state D with ps");
      });
  if (!submitted) ++unseen_;  // there is no thread
}

void Procfs::Apply(ScanResult result) {
  unseen_ += result.unseen;
  if (std::exchange(late_, false)) TellState(Availability::kUp);
  for (ScanResult::Started& started : result.started) {
    if (table_->HasEnded(started.start.key)) continue;  // while the scan was under way
    if (table_->Add(std::move(started.tracked))) Tell(std::move(started.start));
  }
  for (SampleBatch& batch : result.samples) Tell(std::move(batch));
  for (ProcessExit& exit : result.ended) {
    const TrackedProcess* const tracked = table_->Find(exit.key.pid);
    if (tracked == nullptr || tracked->key != exit.key) continue;  // told by another source
    table_->Remove(exit.key);
    Tell(exit);
  }
  for (const ProcessKey& key : result.missing) {
    TrackedProcess* const tracked = table_->Find(key.pid);
    if (tracked == nullptr || tracked->key != key) continue;
    if (table_->exits_told() && !std::exchange(tracked->missing, true)) continue;
    table_->Remove(key);
    ProcessExit exit;
    exit.key = key;
    Tell(exit);
  }
}

}  // namespace rankscope::collectors
