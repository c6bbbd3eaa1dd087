// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of startup_crash and runtime_exception share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

bool IsMine(const features::Cause& cause);

enum class When { kStart, kProbablyStart, kPerhapsStart, kTraining, kUnknown };

// The program printed a loss or a reward in words of its own, again and again, and it changed.
bool TrainedInItsOwnWords(const features::JobFeatures& f);
// Many records that only the generic dialect reads came before it.
bool TrainedInNobodysWords(const features::JobFeatures& f, const features::Cause& cause);

When Place(const features::JobFeatures& f, const features::Cause& cause);

Finding Describe(const features::JobFeatures& f, const features::Cause& primary);

}  // namespace rankscope::families
