// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is left of a job once its verdict is final: from its window, for the one that goes on from
// it. Pure.
#pragma once

#include <cstdint>

#include "detectors/model/job_summary.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/windows/job_window.h"

namespace rankscope::engine {

// Of all its attempts: how far the last that trained came, and what was saved last. Texts are
// masked. `wall_offset_ns`: 0 = the time is not known.
JobSummary SummarizeJob(const windows::JobWindow& job, const proto::Verdict& verdict,
                        int64_t wall_offset_ns, Timestamp now);

}  // namespace rankscope::engine
