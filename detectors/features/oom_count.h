// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the kernel counted an OOM kill when a process ended by SIGKILL, where nobody reported the
// kill itself. The count alone is no failure: a run survives the kill of a tool. Private to
// features; pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// After the causes.
void DescribeOomCount(const windows::JobWindow& job, Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
