// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's own commands, by name and with a deadline: every one of them waits for seconds where the
// controller is down. Beside the controller slurmrestd may be asked instead. No libslurm: its
// structures change with each release. `Commands` is for a worker's thread, `CallBook` for the
// loop's.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/library_call.h"
#include "detectors/model/result.h"
#include "exporter/loop/command.h"

namespace rankscope::exporter::slurm {

enum class Call : uint8_t {
  kJobs,
  kNodes,
  kDiagnostics,
  kAccounting,
  kOneJob,
  kComment,
  kSteps,
  kQueue
};
inline constexpr size_t kCalls = 8;

struct RestService {
  std::string url;           // http://HOST:PORT/slurm/v0.0.*; empty: there is none
  std::string options_file;  // for ReadHttpOptions, read by each request; empty: none
};

enum class Asked : uint8_t { kCommands, kRest };

// "scontrol show job", "slurmrestd jobs"; for the program's life.
std::string_view NameOf(Call call, Asked asked = Asked::kCommands);

// What stands behind each column of kAccounting, kComment and kSteps: random, and another one for
// each call. Names, comments and command lines are their owners' and hold anything: a newline, and
// behind it what looks like the row of another job. They cannot hold what nobody knows beforehand.
std::string NewSeparator();

class Commands {
 public:
  // `environment`: "SLURM_CONF=..." where it is not the default.
  Commands(std::vector<std::string> folders, std::vector<std::string> environment,
           RestService rest = {});

  // Jobs, arrays and tasks of arrays ("7_3"), separated by commas, and where their output goes
  // (QueueColumns::kWithOutput): one call of squeue, whatever is asked besides.
  CommandOutcome RunQueueOf(std::string_view jobs, Duration deadline,
                            std::string_view separator) const;

  // Who is asked, which decides whether the answers are texts or JSON.
  Asked asked() const { return rest_.url.empty() ? Asked::kCommands : Asked::kRest; }

  // Whether squeue is there: for steps, which slurmrestd does not list, to confirm what scontrol
  // prints of all jobs, and in its place where one is asked about.
  bool has_queue() const { return !squeue_.empty(); }

  // Which of Slurm's commands are missing, and where they were looked for; ok: none.
  Status Find();

  // `jobs`: numbers, separated by commas, for kAccounting, kOneJob and kComment; of slurmrestd one.
  // `expects`: bytes of the answer. `separator`: for what has columns.
  CommandOutcome Run(Call call, std::string_view jobs, Duration deadline, size_t expects = 0,
                     std::string_view separator = {}) const;

 private:
  CommandOutcome AskRest(Call call, std::string_view job, Duration deadline, size_t expects) const;

  std::vector<std::string> folders_, environment_;
  RestService rest_;
  std::string scontrol_, sdiag_, sacct_, squeue_;
};

// How the calls have gone, as NVML's are counted.
class CallBook {
 public:
  explicit CallBook(Asked asked = Asked::kCommands);
  void Note(Call call, const CommandOutcome& outcome);
  const std::vector<LibraryCall>& calls() const { return calls_; }

 private:
  std::vector<LibraryCall> calls_;
};

// One phrase: what went wrong, and what to try; empty: nothing did.
std::string Complaint(Call call, const CommandOutcome& outcome, Asked asked = Asked::kCommands);

// Slurm's words for these, the same in all versions: nobody was asked, so nobody was burdened; and
// an answer, that the controller has forgotten the job or never had it.
bool IsNobodyThere(const CommandOutcome& outcome);
bool IsNoSuchJob(const CommandOutcome& outcome);

// /usr/bin, /usr/local/bin, /opt/slurm/bin: where packages and sites put them.
std::vector<std::string> CommandFolders();

}  // namespace rankscope::exporter::slurm
