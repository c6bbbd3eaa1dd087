// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One look at all of /proc: which processes belong to training jobs, what each of them uses, which
// have ended. Cheap by remembering the processes that are nobody's: those are looked at twice when
// new (a fork takes its final environment only at exec) and then every kRelookScans. Used by one
// thread at a time: the worker's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/processes/proc_reader.h"
#include "exporter/processes/process_table.h"

namespace rankscope::collectors {

struct ScanRequest {
  std::vector<TrackedProcess> tracked;
  std::vector<ProcessKey> asked;  // facts wanted
};

struct ScanResult {
  struct Started {
    TrackedProcess tracked;
    ProcessStart start;
  };
  std::vector<Started> started;  // parents before children; new ones and asked ones
  std::vector<SampleBatch> samples;
  std::vector<ProcessExit> ended;   // zombies: the status is there to be read
  std::vector<ProcessKey> missing;  // no longer in /proc
  // Looks that failed for another reason, as where we have no descriptor left: they say nothing of
  // the process.
  int64_t unseen = 0;
};

class ProcScanner {
 public:
  static constexpr int kRelookScans = 16;

  explicit ProcScanner(ProcReader reader);

  ScanResult Scan(const ScanRequest& request);

 private:
  struct Nobody {
    int64_t start_ticks = 0;
    std::string comm;
    int looks = 0;
  };
  // Which cgroup's freezer holds a process: sources that tell of processes know it of some only.
  struct Freezer {
    std::string directory;
    bool v1 = false;
  };
  // The smallest CPU quota above a process.
  struct Quota {
    std::string directory;  // empty: there is none
    bool v1 = false;
    double cpus = 0;
  };
  struct Pass;

  void ScanTracked(const ScanRequest& request, Pass& pass);
  void ScanOthers(const ScanRequest& request, Pass& pass);
  std::optional<int64_t> FrozenCgroup(const ProcessKey& key, Pass& pass);
  void AddQuota(const ProcessKey& key, Pass& pass, SampleBatch& batch);
  Quota SmallestQuota(int32_t pid) const;
  bool Wanted(const StatLine& stat, const ProcessFacts& facts, const Pass& pass) const;
  void AddStarted(const StatLine& stat, ProcessFacts facts, Pass& pass);
  void ScanHost(Pass& pass) const;
  void ScanMemory(Pass& pass);

  ProcReader reader_;
  int64_t scans_ = 0;
  int64_t page_bytes_;
  double tick_seconds_;
  bool has_gpus_ = false;
  std::unordered_map<int32_t, Nobody> nobodies_;
  std::map<ProcessKey, Freezer> freezers_;  // of those that are tracked
  std::map<ProcessKey, Quota> quotas_;      // the same
  // v1 counts a kill in the victim's own directory, which is gone soon after: the last counts, by
  // job and directory.
  std::map<std::string, std::map<std::string, int64_t>> v1_oom_kills_;
};

}  // namespace rankscope::collectors
