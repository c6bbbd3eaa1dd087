// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The standard files of a process as /proc shows them now. Opens nothing, and asks no file server.
// Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "bpf/events/stdio.h"
#include "exporter/output/output_file.h"

namespace rankscope::probes {

// nullopt: the process has gone, or is not ours to look at.
std::optional<rs_standard> ReadStandardFiles(int32_t pid);

// As those know a file who read it.
collectors::OutputFileId PlaceOf(const rs_file& file);

}  // namespace rankscope::probes
