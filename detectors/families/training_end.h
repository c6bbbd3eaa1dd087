// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of undertrained and healthy and undetermined share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

bool EndedWell(const features::JobFeatures& f);

Question WhetherItLearned(const features::JobFeatures& f);

}  // namespace rankscope::families
