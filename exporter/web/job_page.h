// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The page of one job: what it is in, how sure that is, what to do now; then what shows it, the
// chain of events, its ranks, its time and its GPUs. Everything that came from the world is
// escaped. Pure; any thread.
#pragma once

#include <string>

#include "exporter/metrics/published.h"

namespace rankscope::web {

std::string JobPage(const JobStatus& job, const metrics::Published& published);

}  // namespace rankscope::web
