// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Expands a scenario's YAML: each, repeat, ramp, noise, drop, lines, ranks, and the ticks.
// Single-threaded.
#pragma once

#include <string>

#include "tests/scenarios/scenario.h"

namespace rankscope::scenarios {

// A scenario's second 0, in the recording's monotonic time: not zero, so that nothing relies on it.
inline constexpr double kStartSeconds = 1000;

Scenario ExpandScenario(const std::string& path, const YAML::Node& root);

}  // namespace rankscope::scenarios
