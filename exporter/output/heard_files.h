// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Up to where the regular files that jobs write to were heard, by the lines that were recorded:
// what an earlier daemon heard and did not record is heard again from the file. Bounded. Single
// writer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/output/output_file.h"

namespace rankscope::collectors {

struct HeardFile {
  std::string job_id;
  OutputFileId id;
  int64_t end = 0;      // of the last line that was heard
  uint32_t stream = 0;  // that it was heard in
  bool ranked = false;  // a rank wrote to it itself
  Timestamp last;       // when that line was heard
  // By stream: of its newest line. One that goes back tells that the file was cut short.
  std::map<uint32_t, int64_t> ends = {};
};

class HeardFiles {
 public:
  // Of more, those that were heard first go.
  static constexpr size_t kMaxFiles = 1024;
  // Streams of one file whose ends are remembered.
  static constexpr size_t kMaxStreams = 64;

  // In the order of time.
  void Note(const LogLine& line, Timestamp t);
  void ForgetJob(const std::string& job_id);
  // The one that was heard last of those with this id; null: none.
  const HeardFile* Find(const OutputFileId& id) const;
  std::vector<HeardFile> All() const;
  // Of which anything was heard by others than their wrappers.
  std::set<std::string> Jobs() const;
  // Whether all that was heard of the job, by others than its wrapper, went to files.
  bool IsPlaced(const std::string& job_id) const {
    return unplaced_.size() < kMaxUnplaced && !unplaced_.contains(job_id);
  }

 private:
  static constexpr size_t kMaxUnplaced = 4096;

  std::map<std::pair<std::string, OutputFileId>, HeardFile> files_;
  std::set<std::string> unplaced_;
};

}  // namespace rankscope::collectors
