// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of gpu_underutilized and throughput_bound and straggler share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

inline constexpr double kLaunches = 1000;  // in the window

// The run goes on or ended well, and launches.
bool Launches(const features::JobFeatures& f);

// And was looked at for long enough.
bool Readable(const features::JobFeatures& f);

Finding Slow(const features::JobFeatures& f, std::string_view sub);

RuledOut NotSlow(const features::JobFeatures& f, proto::Store needs, Reason by,
                 features::EvidenceRef evidence, FieldValues values = {});

// Waits clearly less than its peers, in most pieces, and hardly ever for anything itself: a host
// that is merely busier than the others while its card works still waits for its card.
bool ComesLate(const features::LaunchFeatures& l, double ratio);

}  // namespace rankscope::families
