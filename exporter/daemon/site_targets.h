// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a site expects of the jobs of a partition. Pure.
#pragma once

#include <string>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::exporter {

// The targets (PARTITION:WHAT=N, checked) that a scheduler's record of a job brings with it, as
// events of that job; none where the record names no partition, or one without a target.
std::vector<Event> TargetsOf(const SchedulerRecord& record,
                             const std::vector<std::string>& targets);

}  // namespace rankscope::exporter
