// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Why a rank does not move, by what its threads do: for the families of a standstill. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/families/family.h"

namespace rankscope::families {

struct ThreadCause {
  std::string_view sub;        // empty: its threads do not tell
  std::string phrase;          // goes on from "rank 1": "is stopped"
  std::string_view advice;     // of the remedies, where the sub does not tell it
  std::vector<int32_t> ranks;  // empty: all of them alike
  std::vector<features::EvidenceRef> shows;
  proto::Domain domain = proto::DOMAIN_UNKNOWN;
  Timestamp onset;      // 0 = not known
  bool proved = false;  // by the state that the kernel gives the process, not by a share of time
  bool others_wait = false;  // every other rank of this node waits
};

// The cause of one rank; `ranks` names it.
ThreadCause CauseOfRank(const features::JobFeatures& f, const features::RankWait& rank);

// The ranks of a job that keep the others waiting.
ThreadCause CauseOfStandstill(const features::JobFeatures& f);

// To a hang that silence has shown: who did not arrive, and why; what is answered is not asked. A
// silence that is everybody's pause is no hang: the finding is withdrawn.
void AddThreadCause(const features::JobFeatures& f, Finding& finding);

// The same where no text tells of progress: only a state that cannot be anything else decides.
Finding StandstillOfThreads(const features::JobFeatures& f);

// D3's form that threads show: a rank that the host gives too little CPU.
Finding StarvedRank(const features::JobFeatures& f);
// And the other: a rank that waits for its files, or for processes of its own that wait for files,
// while the others hardly do.
Finding RankOfSlowStorage(const features::JobFeatures& f);
// Why there is none such; empty where threads do not tell.
FieldValues NobodyStarved(const features::JobFeatures& f);

}  // namespace rankscope::families
