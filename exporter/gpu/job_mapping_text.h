// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The files of a directory that a prolog writes for dcgm-exporter's --hpc-job-mapping-dir, as text.
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collectors {

// A file's name: a GPU's index, or an index and an instance. "3", "3.1".
bool IsGpuName(std::string_view name);

// The job ids of a file, one a line; lines that are none are passed over. Of a text that is not the
// whole file, the line that may be cut is none.
std::vector<std::string> ReadJobIds(std::string_view text, bool whole);

}  // namespace rankscope::collectors
