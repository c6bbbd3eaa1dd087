// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job as published, with its verdict's documents: each is rendered when the first client asks for
// it, and shared by all until the job changes, over any number of ticks. Any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "detectors/status/job_status.h"
#include "exporter/http/part.h"

namespace rankscope::http {

enum class Form { kJson, kText, kProtobuf };

class JobDocument {
 public:
  explicit JobDocument(std::shared_ptr<const JobStatus> job) : job_(std::move(job)) {}

  const JobStatus& job() const { return *job_; }

  // The verdict: JSON without a line's end, text, or as field `verdicts` of a
  // proto::VerdictDocument. Without the text of logs where `log_text` is false.
  SharedPart Verdict(Form form, bool log_text) const;

 private:
  const std::shared_ptr<const JobStatus> job_;
  std::array<std::array<LazyPart, 2>, 3> verdicts_;  // by form, then without and with log text
};

// The same without anything that quotes a job's output, its command or the kernel's log: for
// listeners that anybody in the network reaches. Numbers, causes and the places that are cited
// stay.
proto::Verdict WithoutLogText(proto::Verdict verdict);
JobStatus WithoutLogText(JobStatus job);
inline constexpr char kWithheld[] = "log text is not served beyond loopback";

}  // namespace rankscope::http
