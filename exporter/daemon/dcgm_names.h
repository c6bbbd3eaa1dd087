// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether GPUs are shown under dcgm-exporter's names, too. Two exporters of one node that both have
// them would make every sum twice what it is, so `auto` keeps them where no other does. Decided
// once at the start: names that come and go are worse than either. Blocks for the seconds that an
// answer may take; main thread, before the loop runs.
#pragma once

#include <string>

#include "detectors/model/observation.h"
#include "exporter/config/config.h"

namespace rankscope::exporter {

struct DcgmNames {
  bool shown = false;
  bool yields = false;  // to a dcgm-exporter that answers later: it may start after this program
  std::string reason;
};

// `proc`: where the processes are.
DcgmNames DecideDcgmNames(const Config& config, const std::string& proc = "/proc");

// Whether the kubelet tells whose the GPUs are, which only these names can show. For `check`.
struct KubeletAnswer {
  Availability state = Availability::kNotApplicable;
  std::string text;
};
KubeletAnswer AskKubelet(const Config& config);

}  // namespace rankscope::exporter
