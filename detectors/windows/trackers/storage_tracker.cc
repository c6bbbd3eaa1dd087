// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/storage_tracker.h"

#include <algorithm>
#include <utility>

#include "detectors/model/event_types.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

std::string Text(const Event& event, std::string_view key) {
  return std::string(TextOf(event, key).substr(0, StorageTracker::kNameCap));
}

Timestamp Begin(const Event& event, Timestamp t) {
  return event.begin.ns > 0 && event.begin < t ? event.begin : t;
}

}  // namespace

void StorageTracker::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  if (event.type == WireType(EventType::kFileError) ||
      event.type == WireType(EventType::kFileMissing)) {
    AddFailure(event, speaker, t);
  } else if (event.type == WireType(EventType::kCheckpointWritten)) {
    AddFile(event, speaker, true, t);
  } else if (event.type == WireType(EventType::kCheckpointRead)) {
    AddFile(event, speaker, false, t);
  } else if (event.type == WireType(EventType::kFileSpace)) {
    AddSpace(event, speaker, t);
  } else if (event.type == WireType(EventType::kFileCallHangs)) {
    AddHang(event, speaker, t);
  } else {
    return;
  }
  seen_ = true;
}

void StorageTracker::OnSamples(const SampleBatch& batch, const Speaker&, Timestamp) {
  for (const Sample& sample : batch.samples) {
    seen_ = seen_ || sample.signal == SignalId::kCheckpointReadBytes;
  }
}

void StorageTracker::AddFailure(const Event& event, const Speaker& speaker, Timestamp t) {
  FileFailure failure;
  failure.rank = speaker.rank;
  failure.process = speaker.process;
  failure.name = Text(event, "name");
  failure.directory = Text(event, "directory");
  failure.call = Text(event, "call");
  failure.kind = Text(event, "class");
  failure.filesystem = Text(event, "filesystem");
  failure.error = NumberOf(event, "errno");
  failure.times = NumberOf(event, "times");
  failure.first = Begin(event, t);
  failure.last = t;
  for (FileFailure& known : failures_) {
    if (known.process != failure.process || known.name != failure.name ||
        known.call != failure.call || known.error != failure.error)
      continue;
    known.times = std::max(known.times, failure.times);
    known.first = std::min(known.first, failure.first);
    known.last = std::max(known.last, failure.last);
    return;
  }
  if (failures_.size() < kMostFailures) {
    failures_.push_back(std::move(failure));
  } else {
    ++dropped_;
  }
}

void StorageTracker::AddFile(const Event& event, const Speaker& speaker, bool written,
                             Timestamp t) {
  CheckpointFile file;
  file.rank = speaker.rank;
  file.process = speaker.process;
  file.name = Text(event, "name");
  file.directory = Text(event, "directory");
  file.bytes = NumberOf(event, "bytes");
  file.size = NumberOf(event, "size");
  file.seconds = static_cast<double>(NumberOf(event, "milliseconds")) / 1000;
  file.complete = NumberOf(event, "complete") != 0;
  file.main_thread = NumberOf(event, "main_thread") != 0;
  file.mapped = NumberOf(event, "mapped") != 0;
  file.begin = event.begin.ns > 0 ? Begin(event, t) : t - Seconds(file.seconds);
  file.end = t;
  if (written && file.main_thread && (saver_.pid == 0 || saver_ == file.process)) {
    saver_ = file.process;
    if (saves_++ == 0) first_save_ = file.begin;
    // Shards that are open at one time count once.
    const Timestamp from = std::max(file.begin, last_save_);
    save_seconds_ += std::max(0.0, (file.end - from).seconds());
    last_save_ = std::max(last_save_, file.end);
  }
  std::vector<CheckpointFile>& files = written ? written_ : read_;
  if (files.size() >= kMostFiles) {
    files.erase(files.begin());
    ++dropped_;
  }
  files.push_back(std::move(file));
}

void StorageTracker::AddSpace(const Event& event, const Speaker& speaker, Timestamp t) {
  FileSpace space;
  space.rank = speaker.rank;
  space.process = speaker.process;
  space.filesystem = Text(event, "filesystem");
  space.free_bytes = NumberOf(event, "free_bytes");
  space.total_bytes = NumberOf(event, "total_bytes");
  space.bus_error = NumberOf(event, "bus_error") != 0;
  space.t = t;
  for (FileSpace& known : spaces_) {
    if (known.process != space.process || known.filesystem != space.filesystem) continue;
    if (known.bus_error && !space.bus_error) return;  // what it was then counts
    known = std::move(space);
    return;
  }
  if (spaces_.size() < kMostSpaces) spaces_.push_back(std::move(space));
}

void StorageTracker::AddHang(const Event& event, const Speaker& speaker, Timestamp t) {
  FileHang hang{speaker.rank, speaker.process, Text(event, "call"),
                static_cast<double>(NumberOf(event, "seconds")), t};
  for (FileHang& known : hangs_) {
    if (known.process != hang.process) continue;
    known = std::move(hang);
    return;
  }
  if (hangs_.size() < kMostSpaces) hangs_.push_back(std::move(hang));
}

}  // namespace rankscope::windows
