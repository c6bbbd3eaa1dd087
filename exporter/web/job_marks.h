// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job has come to, as a strip of time with marks and as a list in words: attempts,
// suspensions, reports of the scheduler. SVG inside the page, without scripts or attributes of
// style. Below 8 kB a job. Pure.
#pragma once

#include <string>

#include "exporter/metrics/published.h"

namespace rankscope::web {

// `now`: what goes on ends there. Nothing at all of a job without marks.
void AppendTimeline(const JobTimeline& timeline, double now_wall_seconds, std::string& out);

// The newest jobs that Slurm's controller reported.
void AppendSlurmJobs(const SlurmReport& report, double now_wall_seconds, std::string& out);

// Where the job was suspended between the two times, as a path of bands in a picture so wide and so
// high; empty: nowhere.
std::string SuspendedBands(const JobTimeline& timeline, double from, double until, double width,
                           double height);

}  // namespace rankscope::web
