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

// No word of it, but the card refused an allocation, this rank launched nothing after it, and the
// command failed within a minute.
bool DiedRefused(const features::JobFeatures& f);
Finding Refused(const features::JobFeatures& f);
// ... and the driver lists so much of others on that card that it would have fitted in their place.
bool OthersHeldIt(const features::JobFeatures& f);

}  // namespace rankscope::families
