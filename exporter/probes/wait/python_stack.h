// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The Python frames of a process, through py-spy where that is installed: read from outside without
// stopping the process for an instant, so what comes may be torn, and is then nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::probes {

// Where it is looked for.
std::vector<std::string> PySpyFolders();

// What `py-spy dump --nonblocking` prints of the process, at most kDumpCap bytes; empty when it
// fails or takes longer than `deadline`. Blocks; for a worker.
inline constexpr size_t kDumpCap = 256 * 1024;
std::string DumpPython(const std::string& py_spy, int pid, Duration deadline);

// The main thread's frames, "module:function", innermost first: nothing else of the text, no file
// names, no values.
inline constexpr size_t kPythonFrames = 24;
std::vector<std::string> MainFrames(std::string_view dump);

}  // namespace rankscope::probes
