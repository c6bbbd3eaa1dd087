// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One line of `rankscope check`, and those of it that ask other programs and hosts. Main thread;
// each waits a few seconds at most.
#pragma once

#include <string>

#include "exporter/config/config.h"

namespace rankscope::cli {

struct Finding {
  std::string name;
  std::string state;  // yes | partly | no | off | n/a: there is nothing here to observe
  std::string text;
  std::string source = {};  // the row of the source table that this is about; empty: none
  bool wanted = false;      // by the configuration: a gap fails `--strict`
  std::string lost = {};    // without it, where there is a gap
  std::string needs = {};   // to close the gap
};

Finding CheckSlurm(const exporter::Config& config);
Finding CheckFleet(const exporter::Config& config);
Finding CheckDcgm(const exporter::Config& config);
Finding CheckKubelet(const exporter::Config& config);
// As `serve` decides at its start.
Finding CheckDcgmNames(const exporter::Config& config);
Finding CheckClock();

}  // namespace rankscope::cli
