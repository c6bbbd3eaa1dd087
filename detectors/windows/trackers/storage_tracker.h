// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what the job reads and writes: checkpoints, data, errors of the file system.
// Bounded. Single writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// One process, one kind of call, one error, one file.
struct FileFailure {
  int32_t rank = -1;
  ProcessKey process;
  std::string name, directory, call, kind,
      filesystem;     // kind: checkpoint | data | shared_memory | other
  int64_t error = 0;  // errno
  int64_t times = 0;
  Timestamp first, last;

  template <class A>
  void Fields(A& a) {
    a(rank, process, name, directory, call, kind, filesystem, error, times, first, last);
  }
};

struct CheckpointFile {
  int32_t rank = -1;
  ProcessKey process;
  std::string name, directory;
  int64_t bytes = 0;
  int64_t size = 0;
  double seconds = 0;
  bool complete = false;
  bool main_thread = false;
  bool mapped = false;
  Timestamp begin, end;

  template <class A>
  void Fields(A& a) {
    a(rank, process, name, directory, bytes, size, seconds, complete, main_thread, mapped, begin,
      end);
  }
};

// Room left in a file system.
struct FileSpace {
  int32_t rank = -1;
  ProcessKey process;
  std::string filesystem;  // checkpoint | shared_memory
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
  bool bus_error = false;  // a page of it could not be had, at t
  Timestamp t;

  template <class A>
  void Fields(A& a) {
    a(rank, process, filesystem, free_bytes, total_bytes, bus_error, t);
  }
};

// A call that has not returned.
struct FileHang {
  int32_t rank = -1;
  ProcessKey process;
  std::string call;
  double seconds = 0;
  Timestamp t;

  template <class A>
  void Fields(A& a) {
    a(rank, process, call, seconds, t);
  }
};

class StorageTracker {
 public:
  static constexpr size_t kMostFailures = 128;  // further ones are counted
  static constexpr size_t kMostFiles = 128;     // checkpoints read, and as many written; the newest
  static constexpr size_t kMostSpaces = 64;     // one of each rank of a large node
  static constexpr size_t kNameCap = 128;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);

  const std::vector<FileFailure>& failures() const { return failures_; }
  const std::vector<CheckpointFile>& written() const { return written_; }
  const std::vector<CheckpointFile>& read() const { return read_; }
  const std::vector<FileSpace>& spaces() const { return spaces_; }
  const std::vector<FileHang>& hangs() const { return hangs_; }
  bool seen() const { return seen_; }  // whether anything at all was told of files
  int64_t saves() const { return saves_; }
  // Of the main threads: seconds inside saves since the first of them, the longest rank's.
  double save_seconds() const { return save_seconds_; }
  Timestamp first_save() const { return first_save_; }
  Timestamp last_save() const { return last_save_; }

  template <class A>
  void Fields(A& a) {
    a(failures_, written_, read_, spaces_, hangs_, seen_, saves_, save_seconds_, saver_,
      first_save_, last_save_, dropped_);
    // Restored from damaged bytes.
    if (failures_.size() > kMostFailures) failures_.resize(kMostFailures);
    if (written_.size() > kMostFiles) written_.resize(kMostFiles);
    if (read_.size() > kMostFiles) read_.resize(kMostFiles);
    if (spaces_.size() > kMostSpaces) spaces_.resize(kMostSpaces);
    if (hangs_.size() > kMostSpaces) hangs_.resize(kMostSpaces);
  }

 private:
  void AddFailure(const Event& event, const Speaker& speaker, Timestamp t);
  void AddFile(const Event& event, const Speaker& speaker, bool written, Timestamp t);
  void AddSpace(const Event& event, const Speaker& speaker, Timestamp t);
  void AddHang(const Event& event, const Speaker& speaker, Timestamp t);

  std::vector<FileFailure> failures_;
  std::vector<CheckpointFile> written_, read_;
  std::vector<FileSpace> spaces_;
  std::vector<FileHang> hangs_;
  bool seen_ = false;
  int64_t saves_ = 0;
  double save_seconds_ = 0;
  ProcessKey saver_;  // whose saves are counted: the first that saved
  Timestamp first_save_, last_save_;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::windows
