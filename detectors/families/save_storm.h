// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Saving checkpoints costs more than training gains by it: one of the ways of being bound.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

Finding SaveStorm(const features::JobFeatures& f);

}  // namespace rankscope::families
