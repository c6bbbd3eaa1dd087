// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What of a wrapper's recording the daemon takes: a wrapper speaks about its own job, its own child
// and its own lines, and who these are the kernel says. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "detectors/model/observation.h"
#include "exporter/run/peer.h"

namespace rankscope::run {

// An observation with the texts that it borrows.
struct Heard {
  Observation observation;
  std::string text;
  std::string stream_name;

  const Observation& Bound();
};

Heard Keep(Observation observation);

struct Sifted {
  std::optional<Heard> heard;  // as it is believed
  bool foreign = false;        // it is not a wrapper's to say
};

struct WrapperWords {
  std::string job_id;
  ProcessKey claimed_root;
  Peer peer;
  ForkedProcess root;  // the process that it has forked; pid 0: it has not shown one

  Sifted Sift(const Observation& observation) const;
};

}  // namespace rankscope::run
