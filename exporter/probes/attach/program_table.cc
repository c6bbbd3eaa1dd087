// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/program_table.h"

namespace rankscope::probes {

std::vector<ProgramRow> ProgramTable() {
  std::vector<ProgramRow> all;
  for (const std::span<const ProgramRow> rows :
       {ProcessProgramTable(), StdioProgramTable(), CallProgramTable(), WaitProgramTable(),
        NetworkProgramTable(), IoProgramTable()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}  // namespace rankscope::probes
