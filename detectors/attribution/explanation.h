// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a process came to its job and its place in it, as lines of text: each fact's value, which
// source won, which others said something else. Pure. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/attribution/process_info.h"

namespace rankscope::attribution {

// A card of the process, in words: "0 (GPU-...), given by slurm".
using GpuWords = std::vector<std::string>;

// `ras`: what NCCL's RAS knows of it; empty: nothing.
std::string Explain(const ProcessInfo& process, const GpuWords& gpus, std::string_view ras);

// launcher | rank | worker; empty where it is not known.
std::string_view NameOf(ProcessRole role);

}  // namespace rankscope::attribution
