// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is told of a job: its verdict as plain data, bounded, with every text on one printable line.
// A job's own words are in it; whoever writes it in a format escapes it for that format. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/job_summary.h"
#include "detectors/status/job_status.h"
#include "exporter/notify/news.h"

namespace rankscope::exporter::notify {

// The end of what the culprit printed.
struct LogTail {
  std::string of;  // "rank 3", "the job"
  std::vector<std::string> lines;
};

struct Occasion {
  News news;
  std::optional<JobSummary> summary;  // nullopt: nothing is known of its training
  LogTail tail;
  std::string node;  // that tells
  int64_t wall_ns = 0;
};

// The first message of a thread; Follow makes it another.
Notification Describe(const JobStatus& job, const Occasion& occasion);
void Follow(const proto::ToldJob& told, Notification& notification);

// What was kept of the job's files, and what was not: a line each.
void AddFiles(const std::string& archive, const std::vector<std::string>& kept,
              const std::vector<std::string>& left, Notification& out);

// What a user's own process has written, as it may be told by somebody who answers for it: bounded
// texts, an id of its own job, and whose it is by the owner of the file. Nothing: it is no message
// of his.
std::optional<Notification> TakeClaim(const Notification& claimed, int64_t uid);

// What has been told of the job then.
proto::ToldJob ToldAfter(const Notification& notification, const proto::ToldJob* before);

}  // namespace rankscope::exporter::notify
