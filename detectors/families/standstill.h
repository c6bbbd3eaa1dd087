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

// Ranks wait in a collective, none was entered or ended for the timeout, and nothing else explains
// it.
bool StandsInCollective(const features::JobFeatures& f);

// What the ranks that are not in it do meanwhile.
enum class Absence : uint8_t {
  kNone,      // nobody is absent: all have entered it
  kBusyCard,  // launches kernels: evaluates or the like; comes back
  kWriting,   // writes files: saves; comes back
  kBusyHost,  // uses a CPU and nothing else: compiles, or spins
  kStill,
};
Absence AbsenceOf(const features::JobFeatures& f);

// Collectives or launches go on, whatever the text says.
bool Advances(const features::JobFeatures& f);

}  // namespace rankscope::families
