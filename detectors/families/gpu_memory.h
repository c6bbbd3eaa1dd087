// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of cuda_oom and gpu_cotenant share.
#pragma once

#include <optional>

#include "detectors/families/family.h"

namespace rankscope::families {

std::optional<double> Field(const logs::Incident& incident, std::string_view key);

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

// Memory on the card that neither the job's processes nor the free list account for.
double ForeignBytes(const features::JobFeatures& f, const logs::Incident& incident);

// Others hold a GiB or more, and what was refused would have fitted without them. Where the message
// does not tell what was asked for, or what was free, it is taken to.
bool IsCrowdedOut(const features::JobFeatures& f, const logs::Incident& incident);

}  // namespace rankscope::families
