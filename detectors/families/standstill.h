// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// When calls into NCCL and CUDA that have stopped mean that training stands still, without a word
// of text; and when they go on although the text is silent. Private to families; pure.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

// Seconds without a collective after which a run that made many stands: max(floor, 10 x the usual
// pause or the printed step, 3 x the longest pause that it made twice, at most 600), with the
// budgets of saving and evaluating.
double StandstillTimeout(const features::JobFeatures& f);

// Seconds that an evaluation may take unseen.
double EvaluationBudget(const features::JobFeatures& f);

// Ranks wait in a collective, none was entered or ended for the timeout, and nothing else explains
// it. Of a run that was not seen to make many: only after the longest budget there is.
bool StandsInCollective(const features::JobFeatures& f);

// Time ran out in which another rank was to come, to the group or to a communicator of it; not the
// time to connect to where they meet.
bool WaitsForAPeer(const logs::Incident& incident);

// NCCL has no interface to speak through, while the store was there to tell it so.
bool FindsNoInterface(const logs::Incident& incident);

// It has made enough collectives to know what it is used to.
bool Seasoned(const features::JobFeatures& f);

// Nobody waits in a collective, as far as watchdogs tell: whatever stopped, it was not one. Of
// ranks that are counted only since they stand, they do not tell.
bool NobodyWaits(const features::JobFeatures& f);

// What the ranks that are not in it do meanwhile.
enum class Absence : uint8_t {
  kNone,      // nobody is absent: all have entered it
  kBusyCard,  // launches kernels: evaluates or the like; comes back
  kWriting,   // writes files: saves; comes back
  kBusyHost,  // uses a CPU and nothing else: compiles, or spins
  kStill,
};
Absence AbsenceOf(const features::JobFeatures& f);

// A rank, or a process that it waits for, was killed, and its peers go on waiting for it in a
// collective, past every budget: nobody ends the run. Of a run that is over the kill is all there
// is to say.
bool FreezesItsPeers(const features::JobFeatures& f);

// No training record for five usual intervals, and for longer than it was ever seen to take; and
// nothing else shows that it goes on. Far from the hang timeout: it says only that nobody can say
// any more that the run is well.
bool Stalls(const features::JobFeatures& f);

// Collectives or launches of its ranks were ever counted, and still are.
bool CallsCounted(const features::JobFeatures& f);
// Collectives or launches go on, whatever the text says.
bool Advances(const features::JobFeatures& f);

// D3 by calls: one rank comes late to every step, and its peers wait for it. Matched or not.
Finding LateRank(const features::JobFeatures& f);

}  // namespace rankscope::families
