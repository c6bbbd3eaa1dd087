// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The JSON documents of /evidence, /events and /summary. Absent numbers are null. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "detectors/model/job_summary.h"
#include "detectors/model/slurm_report.h"
#include "detectors/status/job_status.h"
#include "exporter/slurm/event_json.h"

namespace rankscope::http {

// What the verdict shows, which stores spoke, and every number known of the job.
std::string EvidenceJson(const JobStatus& job);

// Attempts, how often the verdict changed, what happened to the job on this node (began, suspended,
// resumed, what the scheduler told, ended), and the cause chain with its evidence.
std::string EventsJson(const JobStatus& job);
// Beside Slurm's controller: its events as well, and of a job that is not watched here (null) only
// these.
std::string EventsJson(const JobStatus* job, const SlurmReport& report,
                       const exporter::slurm::EventQuery& query);

// What is left of a job; `line`: as it is kept.
std::string SummaryJson(const JobSummary& summary, std::string_view line);

}  // namespace rankscope::http
