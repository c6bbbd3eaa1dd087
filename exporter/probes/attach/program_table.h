// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The programs in the kernel, for `list probes` and the table in bpf/README.md: a row says at which
// hook a program runs, what it tells, and what it costs whom. Each file of probes offers its own
// rows. Any thread.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace rankscope::probes {

struct ProgramRow {
  std::string_view name;
  std::string_view hook;
  std::string_view event;
  std::string_view cost;
};

std::span<const ProgramRow> ProcessProgramTable();
std::span<const ProgramRow> StdioProgramTable();
std::span<const ProgramRow> CallProgramTable();
std::span<const ProgramRow> WaitProgramTable();
std::span<const ProgramRow> NetworkProgramTable();
std::span<const ProgramRow> IoProgramTable();

// All of them.
std::vector<ProgramRow> ProgramTable();

}  // namespace rankscope::probes
