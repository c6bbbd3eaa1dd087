// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Saving checkpoints costs more than training gains by it: one of the ways of being bound.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

Finding SaveStorm(const features::JobFeatures& f);

// This rank has written a checkpoint in the newest so many seconds, or is at it: its GPU rests and
// its main thread stands in files meanwhile, and its peers wait for it.
bool HasSaved(const features::JobFeatures& f, int32_t rank, double seconds);

}  // namespace rankscope::families
