// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One look at all threads of a process that does not move: where its main thread waits in the
// kernel and in Python, and what is around it. Blocks; for a worker.
#pragma once

#include <span>
#include <string>

#include "detectors/model/observation.h"
#include "exporter/probes/wait/thread_reader.h"

namespace rankscope::probes {

// `py_spy`: its path; empty = not installed. `own`: the processes of all jobs here, which wait for
// each other. Nothing where the process has ended.
std::optional<Event> TakeSnapshot(const ThreadReader& reader, const std::string& py_spy,
                                  const ProcessKey& process, std::span<const int32_t> own = {});

}  // namespace rankscope::probes
