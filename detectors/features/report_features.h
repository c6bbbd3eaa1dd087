// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL and PyTorch report of their own collectives, for the families: whom RAS and the Flight
// Recorder's dumps name. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct ReportFeatures {
  // Ranks that hold the others up, as one source has it; empty = it names nobody.
  struct Accused {
    std::vector<int32_t> ranks;  // rising
    std::string how;             // absent | behind | not_started | peer | dead | unresponsive
    EvidenceRef evidence = kNoEvidence;
  };
  Accused flight;
  // By their dumps ranks stand in collectives past the time that one may take: the watchdog's, or a
  // minute.
  bool stands = false;
  double stands_seconds = -1;  // how long, at the dump; -1 = the dumps do not tell
  std::vector<int32_t> standing;
  EvidenceRef standing_evidence = kNoEvidence;
  Accused ras;  // unchanged in two reports, or given up by RAS itself

  // Ranks that wait for something else than the rest.
  struct Disorder {
    std::string sub;             // op | size | order; empty = none is seen
    std::vector<int32_t> ranks;  // the fewer ones; empty where nobody is the odd one out
    EvidenceRef evidence = kNoEvidence;
  };
  Disorder disorder;

  int64_t dumps = 0;  // ranks that have written one
  int64_t ras_reports = 0;
  bool ras_knows_none = false;                    // RAS answers and knows no communicator
  EvidenceRef ras_evidence = kNoEvidence;         // what its newest report says in all
  EvidenceRef ras_silent_evidence = kNoEvidence;  // it takes questions and does not answer

  // Ranks have other numbers in NCCL than in their environment.
  EvidenceRef renumbered_evidence = kNoEvidence;

  // The node's RDMA ports while it ran; nothing of them where there are none.
  double rdma_sent_bytes = -1;
  double tcp_sent_bytes = -1;               // of the ranks of this node
  bool link_fell = false;                   // a port that was up when the run began went down
  EvidenceRef port_evidence = kNoEvidence;  // faults that ports counted under the run

  // Medians over the ranks of what Inspector measured, bytes per second.
  double bus_bandwidth = -1;
  double slowest_bus_bandwidth = -1;
  EvidenceRef inspector_evidence = kNoEvidence;
};

}  // namespace rankscope::features
