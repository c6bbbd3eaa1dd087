// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of idle_gpu_hang and host_pause share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

bool Watched(const features::JobFeatures& f);

}  // namespace rankscope::families
