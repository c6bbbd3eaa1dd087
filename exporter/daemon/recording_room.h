// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How much room the recordings of a node take, and whose go when it is more than state.total_bytes.
// Any thread; Scan and Remove wait for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankscope::exporter {

// A recording in state.dir.
struct RecordingFolder {
  std::string path;
  std::string name;  // FileNameOf its job; an earlier job of that id has "~" and a time behind it
  bool finished = false;        // marked so, or set aside
  bool in_use = false;          // by a live job; the scan does not know
  int64_t ended_ns = 0;         // by the disk's clock
  int64_t bytes = 0;            // that the disk has given for it
  std::optional<uint32_t> uid;  // of its owner, where the mark names one
};

// All of them, and removes what Remove left behind.
std::vector<RecordingFolder> ScanRecordings(const std::string& state_dir);

// So many folders at most, however small they are: each costs a look at every scan.
inline constexpr size_t kMostRecordings = 8192;

// Those that must go, so that all fit: each time the oldest finished one of the owner who takes the
// most room, in bytes or in number, and more than an equal share. Recordings in use count, and
// stay.
std::vector<RecordingFolder> ToRemove(std::vector<RecordingFolder> folders, int64_t total_bytes,
                                      size_t most = kMostRecordings);

// Out of the way at once; the files go when RemoveAside is called. False where it could not be.
bool PutAside(const std::string& state_dir, const RecordingFolder& folder);
void RemoveAside(const std::string& state_dir);

}  // namespace rankscope::exporter
