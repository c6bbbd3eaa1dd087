// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the cards show, for the families that ask more than them. Pure.
#pragma once

#include <string>

#include "detectors/families/family.h"

namespace rankscope::families {

// A card of the run whose uncorrected errors rose around this failure, which they may explain;
// null: none.
const features::RunGpu* FailedUnder(const features::JobFeatures& f, const features::Cause& cause);

// C3: every card has worked, holds the job's memory, and runs nothing any more.
Finding IdleCards(const features::JobFeatures& f);
// C3: cards were given to the job, and its one rank stands still and has never begun to use any.
Finding NeverAttached(const features::JobFeatures& f);
// The job's cards were looked at all along, and nothing has used them; false where that is not
// sure.
bool CardsAreUntouched(const features::JobFeatures& f);

// D1: steps come, and the cards hardly do anything.
Finding IdlingCards(const features::JobFeatures& f);
// What to cite where they do some, and rest for half of the time: no fault, and worth a look.
features::EvidenceRef HalfIdleCards(const features::JobFeatures& f);
// Why not: every card is busy.
bool CardsAreBusy(const features::JobFeatures& f, double& share, features::EvidenceRef& evidence);

// The card of this rank (-1: of any) on which others hold most memory; null: they hold none.
const features::RunGpu* SharedCard(const features::JobFeatures& f, int32_t rank);

// A GPU of this rank whose clock heat or its power supply holds down while the steps take longer:
// B3, and why the rank comes late; null: none is.
const features::RunGpu* ThrottledGpuOf(const features::JobFeatures& f, int32_t rank);

bool Runs(const features::JobFeatures& f);
// Past the first steps, which compile and fill caches.
bool IsWarm(const features::JobFeatures& f);

}  // namespace rankscope::families
