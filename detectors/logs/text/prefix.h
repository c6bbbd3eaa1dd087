// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands before a program's own words: prefixes of launchers (srun -l, torchrun, accelerate,
// Ray, pdsh, mpirun), which may name the rank, and of what ships the lines (docker, kubectl, the
// journal); and loggers' prefixes (time, level, module), which dialects that begin a line anywhere
// need gone. Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {

struct Unprefixed {
  std::string_view text;
  int32_t rank = -1;        // the innermost rank that a prefix names
  bool local_rank = false;  // as CleanLine::local_rank
};

// The batch of darknet's "96: 1.084791, 1.030988 avg, ..." or "96, 0.012: ...", which looks like
// the label that srun -l gives to a task's lines; empty where `text` does not begin so.
Number DarknetBatch(std::string_view text);

// Takes launcher prefixes off, repeatedly.
Unprefixed StripLauncherPrefixes(std::string_view line);

// Takes one logger's prefix off: "2024-01-02 03:04:05,678 - INFO - name - ", "[INFO|trainer.py:9]
// ... >> ", "INFO:root:", "I0102 03:04:05.6 12 file.py:3] ". Text that is no such prefix stays.
std::string_view StripLoggerPrefix(std::string_view text);

// The line in a record of Docker's json-file driver, {"log":"text\\n","stream":"stdout",...},
// written into `buffer`; any other text stays.
std::string_view UnwrapDockerLine(std::string_view text, std::string& buffer);

// `text` without ANSI control sequences, written into `buffer` (whose capacity is reused). Call
// only where an ESC is in it.
std::string_view StripAnsi(std::string_view text, std::string& buffer);

// Takes off a progress bar that is glued before a record: "  3%|#  | 3/100
// [00:01<00:32, 1.2s/it]{...". Returns the text behind the last "]" of a bar's bracket; `total` is
// n of i/n, or NaN.
struct BehindBar {
  std::string_view text;
  double position;
  double total;
};
BehindBar StripBar(std::string_view text);

}  // namespace rankscope::logs
