// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which job an observation belongs to. Loop thread only.
#pragma once

#include <string>

#include "detectors/attribution/attribution.h"
#include "detectors/model/observation.h"

namespace rankscope::exporter {

// Empty: no job's, or the whole node's. Feeds `attribution` with what the observation says about
// processes.
std::string JobOf(const Observation& observation, attribution::Attribution& attribution,
                  const std::string& boot_id);

}  // namespace rankscope::exporter
