// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When a job began and ended on this node, in wall seconds. Pure; any thread.
#pragma once

#include "detectors/status/job_status.h"

namespace rankscope::web {

// kUnknown where nothing tells.
double BeganAt(const JobStatus& job);
double EndedAt(const JobStatus& job);  // kUnknown while it runs, too

}  // namespace rankscope::web
