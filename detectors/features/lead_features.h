// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which rank the others wait for, and which groups of ranks have more to do than others, by the
// activity of their GPUs: numbers for the families. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/time.h"

namespace rankscope::features {

// How the ranks share the model, as the job's arguments or its output say; 0 = not known.
struct Layout {
  int32_t pipeline = 0, expert = 0;
};

struct LateRank {
  int32_t rank = -1;  // -1: nobody stands out, or too little is known
  // The share of the time that its peers wait for it, at least.
  double lead = 0;
  bool changed = false;       // it was not late before `since`
  Timestamp since;            // or since when the ranks are compared
  double z = 0;               // its lead in deviations of the other ranks' leads
  double next = 0;            // the second largest lead, of the same window
  double identity = 0;        // share of the newest rounds in which it waited least
  bool works = false;         // its GPU is busier than its peers'; else it rests, and they wait
  double own = 0, peers = 0;  // SM activity if it works, else engine activity: last minute
  EvidenceRef evidence = kNoEvidence;
};

// Ranks whose GPUs are busier than those of the others, by their place in a layout.
struct UnevenGroups {
  std::string_view kind;  // stage | expert; empty: they are even, or too little is known
  std::vector<int32_t> heavy;
  size_t groups = 0;
  double ratio = 1;   // time that the heaviest group computes, of that of the lightest; about
  double spread = 0;  // the largest difference within a group, as a share of the time
  double heavy_sm = 0, light_sm = 0;
  bool clocks_alike = true;  // the heavy GPUs are not slower ones
  Timestamp since;
  EvidenceRef evidence = kNoEvidence;
};

struct LeadFeatures {
  Layout layout;
  double seconds = 0;  // of training in which the ranks were compared
  LateRank late;
  UnevenGroups groups;
};

}  // namespace rankscope::features
