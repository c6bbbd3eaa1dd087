// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a probe costs on this machine, in this kernel, by the instruction it stands on: measured on
// functions of our own, with the programs that are used. Takes some 0.1 s of CPU. Any thread but
// the loop's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "exporter/probes/attach/prologue.h"
#include "exporter/probes/attach/uprobe_link.h"

namespace rankscope::probes {

struct SiteCost {
  double entry_seconds = 0;   // of a launch probe at the entry
  double return_seconds = 0;  // more, with one at the return too
};

// Functions of our own that begin as those of libraries do, one for each class, and do no more.
using CalledSite = void (*)();
struct OwnSite {
  SiteClass site;
  CalledSite function;
  uint64_t offset;  // in /proc/self/exe
};
std::vector<OwnSite> OwnSites();

// By SiteClass. Nothing where no probe could be attached to the daemon's own program.
using SiteCosts = std::array<SiteCost, kSiteClasses>;
std::optional<SiteCosts> MeasureSites(AttachVia via, int launch, int launch_end, uint64_t cookie);

}  // namespace rankscope::probes
