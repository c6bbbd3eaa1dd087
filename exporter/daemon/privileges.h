// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which of root's rights the daemon keeps: those that its sources name in their table, for as long
// as it runs, because a probe is attached whenever a library shows up. All others are given up
// before the first thread starts, for its children too. Called once, by `serve`; `check` asks what
// it would be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/config/config.h"

namespace rankscope::exporter {

// Names as in capabilities(7), in small letters, sorted: what the enabled sources and the listen
// addresses need. `old_kernel`: one without the multi-attach link (see kernel_gate). Pure.
std::vector<std::string> NeededCapabilities(const Config& config, bool old_kernel = false);

// Gives up every capability but these, for good: permitted, effective, ambient and bounding set,
// and no program that the daemon starts gains one. What the process never had stays missing. For
// the calling thread and all that it starts. An error names what could not be given up.
Status KeepOnly(std::span<const std::string> names);

}  // namespace rankscope::exporter
