// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What `watch` prints: one line for each change, as text for people and as an object for programs.
// Names and paths are their owners': in text they are made harmless. Pure but for the time zone;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/job_summary.h"
#include "detectors/proto/verdict.pb.h"
#include "exporter/slurm/records.h"
#include "exporter/watch/job_course.h"

namespace rankscope::watch {

struct Line {
  std::string text, json;  // each without its end
};

// Whose line it is, and when.
struct Told {
  const JobCourse* course = nullptr;
  int64_t wall_ns = 0;
};

Line StateLine(const Told& told);
// `error`: why the files are not read; empty: they are.
Line OutputLine(const Told& told, const std::vector<std::string>& paths, std::string_view error);
Line ProgressLine(const Told& told, const JobSummary& summary);
Line VerdictLine(const Told& told, const proto::Verdict& verdict);
// `verdict`: null = there is none. `put_back`: the run is over and the job is not.
Line EndLine(const Told& told, const proto::Verdict* verdict, bool put_back);
// What stands when the watch is ended from outside. `summary`, `verdict`: null = there is none.
Line StandsLine(const Told& told, const JobSummary* summary, const proto::Verdict* verdict);

Line SlurmLine(bool answers, std::string_view why, int64_t wall_ns);
// No such job. `choice`: as it was given.
Line UnknownLine(std::string_view choice, std::string_view why, int64_t wall_ns);
Line NoteLine(const Told& told, std::string_view note);

struct Totals {
  int64_t jobs = 0, completed = 0, others = 0, unknown = 0;
  int status = 0;
};
Line TotalsLine(const Totals& totals, int64_t wall_ns);

// "45 s", "12 min", "4 h 10 min", "3 d 2 h"
std::string Spell(int64_t seconds);

}  // namespace rankscope::watch
