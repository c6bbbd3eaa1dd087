// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What has happened to jobs between one look at all of them and the next. Slurm tells states; a
// person asks for events. Whatever Slurm gives a time of is told with that time, once, however
// often it is seen and after however long a pause: an event is known by its job, kind and time, so
// that a daemon that starts again tells nothing twice. Pure and bounded; single writer.
//
//   submitted   a submission time not seen before: of a job, or of a number that is used again
//   blocked     it waits, and why it waits is another reason than before
//   started     a start time not seen before
//   suspended, resumed
//   requeued    its restart count rose, or accounting says so
//   updated     somebody changed its time limit, its partition or its dependency; a priority
//               changes by itself, and stands among the facts
//   the ends    completed failed cancelled timeout node_fail preempted boot_fail deadline
//               out_of_memory
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/slurm_report.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

class JobLedger {
 public:
  // Some 400 bytes each; those that ended first are forgotten first.
  static constexpr size_t kMaxJobs = 20'000;
  // A day's jobs of a large cluster, while accounting is away; the oldest give way.
  static constexpr size_t kMaxUnexplained = 20'000;

  // Takes up an event told in an earlier life.
  void Remember(const SlurmEvent& event);

  // What `jobs`, of one look by `source` at all of them at `now` (seconds since 1970), tells that
  // is new. Numbers are not set. Steps are passed over.
  std::vector<SlurmEvent> Update(const std::vector<SlurmJob>& jobs, int64_t now,
                                 std::string_view source);
  // The same of accounting's rows of some jobs: a row for each run of a job, oldest first.
  std::vector<SlurmEvent> Explain(const std::vector<SlurmJob>& jobs, int64_t now,
                                  std::string_view source);

  // Who cancelled a job accounting alone knows, and after its end was told: an "updated" event with
  // the reason "cancelled_by".
  std::vector<SlurmEvent> NameCancellers(const std::vector<SlurmJob>& jobs,
                                         std::string_view source);

  // Jobs of which something must have happened that a look at the live ones does not tell: gone
  // while they waited or ran, or begun anew without a word of the run before. Accounting may know.
  // Each is named once; at most `most`.
  std::vector<std::string> TakeUnexplained(size_t most);
  // Those of which accounting could not be asked: they are the next again.
  void PutBack(const std::vector<std::string>& ids);

  size_t jobs() const { return jobs_.size(); }
  int64_t forgotten() const { return forgotten_; }

 private:
  struct Known {
    int64_t submit = 0, start = 0, end = 0;  // newest told
    int64_t first_submit = 0;                // before it the number was another job's
    std::vector<int64_t> earlier_ends;       // told, of runs before the one that ended at `end`
    int64_t restarts = 0;
    bool suspended = false, waits = false, seen = false, told_limits = false;
    int64_t named_end = 0;  // of the run whose canceller is told
    std::string state, reason, dependency, partition;
    int64_t time_limit = -1, priority = -1;
    int64_t asked = 0, ask_again = 0;  // accounting, since it was last seen; not before this time
  };
  // Runs of one job whose ends are known apart.
  static constexpr size_t kMaxRuns = 64;
  class Teller;

  static void NoteEnd(Known& known, int64_t end);
  std::vector<SlurmEvent> Tell(const std::vector<SlurmJob>& jobs, int64_t now,
                               std::string_view source, bool all);
  void MakeRoom();

  std::map<std::string, Known> jobs_;
  std::deque<std::string> unexplained_;
  int64_t forgotten_ = 0;
};

// "completed" of "COMPLETED"; empty: not an end.
std::string_view EndOf(std::string_view state);

}  // namespace rankscope::exporter::slurm
