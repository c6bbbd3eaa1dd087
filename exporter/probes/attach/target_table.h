// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which files are probed. There is room for so many, and it is shared out among the users like a
// link among flows: nobody gets more of it for wanting more, as long as another one lacks what he
// wants (max-min fairness). A file counts for each of its users. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "exporter/probes/attach/library_finder.h"

namespace rankscope::probes {

class TargetTable {
 public:
  // A node's jobs use some versions of three libraries, each perhaps in some images.
  static constexpr size_t kMost = 64;

  struct Target {
    FileVersion version;
    uint32_t owner = 0;  // on whose thread its probes are placed and left
    bool attached = false;
    int64_t number = 0;        // the later it came, the higher
    std::set<uint32_t> users;  // who runs code from it now
    int unused = 0;            // rounds without any
  };

  struct Evicted {
    FileKey file;
    uint32_t owner = 0;
  };
  struct Admission {
    bool admitted = false;
    std::optional<Evicted> evicted;  // what makes room for it; the caller leaves its probes
  };
  // For a file that is not there yet, which this user brings.
  Admission Admit(const FileVersion& version, uint32_t user);

  Target* Find(const FileKey& file);
  void Erase(const FileKey& file) { targets_.erase(file); }
  const std::map<FileKey, Target>& targets() const { return targets_; }
  // Forgets who uses what; the caller names them again.
  void BeginUsers();
  void AddUser(const FileKey& file, uint32_t user);
  // Counts the rounds without a user; those beyond `rounds` are returned, and are still there.
  std::set<FileKey> Unused(int rounds);

 private:
  std::optional<FileKey> LongestUnused() const;
  std::optional<FileKey> OfTheRichest(uint32_t newcomer) const;

  std::map<FileKey, Target> targets_;
  int64_t next_number_ = 1;
};

}  // namespace rankscope::probes
