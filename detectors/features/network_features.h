// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of how the job's processes reach each other: connection attempts, listeners, names that
// do not, for the families. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"

namespace rankscope::features {

struct NetworkFeatures {
  bool seen = false;  // anything at all

  // Processes that did not reach their coordinator, by the kernel's account, and go on failing or
  // have ended for it. Empty: nobody.
  //   refused | syn_timeout | unreachable | dns | port_in_use
  std::string trigger;
  bool ongoing = false;  // they still try
  double seconds = 0;    // since the first try
  std::vector<int32_t> ranks;
  std::string host;     // of the coordinator, as they were told it
  int64_t port = 0;     // 0 = not known
  std::string peer;     // as they tried it
  std::string outcome;  // in the words of exporter/probes/network/network_facts.h
  std::string said_by;  // who says that this is the coordinator
  int64_t attempts = 0;
  EvidenceRef trigger_evidence = kNoEvidence;
  // A rank that listens on that port of this node, while another was told a host elsewhere; -1:
  // none.
  int32_t listener = -1;
  std::string listener_host;  // that it was told itself
  // What else is told of the coordinator: who reached it, where it listens. At most four.
  std::vector<EvidenceRef> beside;

  // A setting, or NCCL's own word, that its bytes go a slow way: over sockets between nodes, or
  // around the cards' links within one.
  EvidenceRef transport_evidence = kNoEvidence;

  // Processes that did reach it, by now.
  int64_t connected = 0;
  EvidenceRef connected_evidence = kNoEvidence;
  // Ranks of this node that live and were observed from their start, and have not tried it, while
  // others have met there for so long.
  std::vector<int32_t> unjoined;
  double unjoined_seconds = 0;
  EvidenceRef unjoined_evidence = kNoEvidence;
};

}  // namespace rankscope::features
