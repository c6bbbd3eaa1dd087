// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is left of a job for the one that goes on from it, days later and on other nodes: how far it
// came, with which loss, and what it saved. One line of at most 1 kB, kept in the state directory,
// in the job's comment and beside Slurm's controller:
//
//   rs1 job:8841 end:1795444490 try:0 code:^a2 node:n1 prog:train.py step:5:400 of:1000
//   loss:2.61:0.702 mad:0.0131 records:80 saves:2 ckpt:/scratch/run7/step_400.pt:91000000:400 .
//
// The line must survive sacctmgr, which writes small letters, and the hook, which replaces quotes,
// brackets and what cannot be printed: so a capital is ^ and its small letter, and every byte
// besides small letters, digits and /._+- is ~ and two digits. What matters most stands first, and
// a full stop ends it: of a line without one the last word may be cut, and is not believed.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

struct JobSummary {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // not known
  static constexpr size_t kMostBytes = 1024;                                 // of the line
  static constexpr size_t kMostCheckpoints = 3;                              // the newest
  static constexpr size_t kMostPathBytes = 160;  // of a path; of a longer one the end is kept
  static constexpr size_t kMostWordBytes = 64;   // of names

  struct Checkpoint {
    std::string path;  // as the program or the kernel told it; "..." begins one that was cut
    double bytes = kNone;
    double step = kNone;

    template <class A>
    void Fields(A& a) {
      a(path, bytes, step);
    }
    bool operator==(const Checkpoint&) const = default;
  };

  std::string job_id;
  std::string array_task;        // "7_3": how Slurm names it beside its number; empty = no task
  int64_t end_wall_seconds = 0;  // since 1970; 0 = not known
  int32_t restarts = 0;          // how often the scheduler had begun it anew by then
  std::string code;              // of its verdict
  std::string node;              // that tells
  std::string program;           // "train.py"
  int64_t records = 0;           // of training
  double first_step = kNone, last_step = kNone, total_steps = kNone;
  double first_loss = kNone, last_loss = kNone;
  double loss_mad = kNone;  // around its own trend
  bool finished = false;    // it said that training was over
  int64_t saves = 0;
  std::vector<Checkpoint> checkpoints;  // newest first

  template <class A>
  void Fields(A& a) {
    a(job_id, array_task, end_wall_seconds, restarts, code, node, program, records, first_step,
      last_step, total_steps, first_loss, last_loss, loss_mad, finished, saves, checkpoints);
    if (checkpoints.size() > kMostCheckpoints) checkpoints.resize(kMostCheckpoints);
  }
};

// The line; old checkpoints are left out where it would grow too long.
std::string JobSummaryToText(const JobSummary& summary);

// The line in `text`, which may be a comment or a document around it; empty: there is none. Of any
// text it takes no more than 1 kB.
std::string_view FindJobSummary(std::string_view text);

// Reads the first line in `text`. Words that nobody knows, or that say nothing, are passed over;
// nullopt: there is no line of this version, or it names no job.
std::optional<JobSummary> ReadJobSummary(std::string_view text);

// Lines by job id.
using JobSummaryLines = std::map<std::string, std::string, std::less<>>;
// Of the job of that number, or of the task of an array ("7_3"), which has a number of its own;
// empty: there is none.
std::string_view LineOfJob(const JobSummaryLines& lines, std::string_view job_id);

// What is left of a job whose attempt `now` came after `before`: an attempt that did not train, or
// did not save, takes nothing away from what was there.
JobSummary GoOn(const JobSummary& before, JobSummary now);

// The program of a command line, by its script or module: "train.py" of `torchrun ... train.py`;
// empty: not known. A shell's script is none: it may start anything.
std::string ProgramOf(const std::vector<std::string>& argv);

}  // namespace rankscope
