// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where a function of a library lies in its file, which is where a uprobe is put, and the probe
// itself: one link of the kernel's multi-attach kind where there is one (6.6), which is undone in
// milliseconds, else a perf event. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/model/result.h"

namespace rankscope::probes {

// Offset of an exported function in an ELF file.
Result<uint64_t> FindFunction(const std::string& path, const char* name);

// Whether this kernel knows the multi-attach link; programs for it are loaded with its attach type.
bool HasMultiLink();
inline constexpr uint32_t kMultiLinkType = 48;  // BPF_TRACE_UPROBE_MULTI

// A descriptor of the probe: closing it takes it away. `multi`: the program was loaded for a
// multi-attach link; else it becomes a perf event, which needs CAP_SYS_ADMIN.
Result<int> AttachProbe(int program, const std::string& path, uint64_t offset, bool at_return,
                        bool multi);

}  // namespace rankscope::probes
