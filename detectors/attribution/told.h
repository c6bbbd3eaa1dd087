// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a process start says, as words with their sources: its cgroup, then its environment. A word
// that cannot be one (no number, a text of megabytes, bytes that cannot be printed) is none. Pure.
// Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/attribution/cgroup_path.h"
#include "detectors/attribution/process_info.h"
#include "detectors/model/observation.h"

namespace rankscope::attribution {

// One source's word for a fact.
struct Word {
  std::string by;
  std::string value;  // empty: it says nothing
};

struct RankKeyRow {
  std::string_view rank, local_rank, world_size;
};

class Told {
 public:
  explicit Told(const ProcessStart& start);

  // A fork tells neither: it has its parent's.
  bool anything() const { return told_; }
  const CgroupFacts& cgroup() const { return cgroup_; }
  // Who gives the process its rank; null: nobody.
  const RankKeyRow* rank_keys() const { return rank_keys_; }
  bool only_task() const { return rank_keys_ != nullptr && rank_keys_->rank == "SLURM_PROCID"; }
  int32_t rank() const;
  int32_t Int(std::string_view key, int32_t absent) const;
  std::string_view Value(std::string_view key) const;

  // Slurm's number of the job in the environment: SLURM_JOB_ID, else SLURM_JOBID.
  Word EnvironmentJob() const;
  // Of the component of a heterogeneous job, whose environment may name the whole one's.
  bool IsHetLeader(std::string_view job_id) const;
  int32_t HetComponent() const;  // by the numbers, which follow each other; -1: none

  // All words for a fact, the most trustworthy source first; none for what a parent says, too.
  std::vector<Word> Of(Fact fact) const;

 private:
  std::vector<Word> Task() const;
  std::vector<Word> OfRankKeys(std::string_view RankKeyRow::*key) const;
  Word FromEnvironment(std::string_view key) const;

  const ProcessStart& start_;
  CgroupFacts cgroup_;
  const RankKeyRow* rank_keys_ = nullptr;
  bool told_ = false;
};

// The first word that says something wins; the others that say something else are held against it.
// Returns its value, and replaces what `info` knew of how it was found. Empty where nobody says
// anything.
std::string Settle(ProcessInfo& info, Fact fact, const std::vector<Word>& words);

// Adds what the process says of its job where nothing is known yet.
void AddJobFacts(const Told& told, const ProcessInfo& process, JobFacts& facts);

}  // namespace rankscope::attribution
