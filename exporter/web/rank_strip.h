// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The ranks of a job that run on this node, a cell each, in the colour of what they do; what a cell
// stands for is told when it is pointed at or reached by the keyboard, and in a table below. About
// 300 bytes per rank. Pure.
#pragma once

#include <string>

#include "detectors/status/job_status.h"

namespace rankscope::web {

// Nothing at all of a job of which no rank is known.
void AppendRanks(const JobStatus& job, std::string& out);

}  // namespace rankscope::web
