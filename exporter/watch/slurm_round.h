// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One round of questions about all jobs that are watched: one call of squeue, and one of sacct
// about those that squeue does not show any more or that ended badly. Blocks; a worker's thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exporter/loop/user_identity.h"
#include "exporter/slurm/commands.h"
#include "exporter/slurm/records.h"
#include "exporter/watch/job_choice.h"

namespace rankscope::watch {

struct Asking {
  std::vector<JobChoice> choices;    // not all of whose jobs are over
  std::vector<std::string> unfound;  // numbers of those of which no job is known yet
  std::vector<std::string> going;    // numbers of jobs that have not ended as far as is known
  std::vector<std::string> ended;    // numbers of those that have, and were explained
  std::vector<int64_t> owners;       // uids whose groups are known
};

struct Round {
  bool answered = false;  // by slurmctld
  std::string complaint;  // why not
  bool away = false;      // nobody is there now: it may come back
  std::vector<exporter::slurm::SlurmJob> jobs;
  bool whole = true;  // who is missing from `jobs` is gone
  bool asked_accounting = false;
  bool no_accounting = false;                        // this cluster keeps none
  std::string accounting_complaint;                  // why it did not answer; empty: it did
  std::vector<exporter::slurm::SlurmJob> accounted;  // and steps
  // Of owners that are new: as whom their files are read.
  std::map<int64_t, exporter::UserIdentity> identities;
};

Round AskSlurm(const exporter::slurm::Commands& commands, const Asking& asking);

// Of which jobs accounting is asked: `jobs` is what squeue has shown. Pure.
std::vector<std::string> ForAccounting(const Asking& asking,
                                       const std::vector<exporter::slurm::SlurmJob>& jobs);

}  // namespace rankscope::watch
