// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed list of families: code, label value, one phrase. Every verdict and every gauge names
// them all.
#pragma once

#include <span>
#include <string_view>

#include "detectors/status/job_status.h"

namespace rankscope::families {

std::span<const FamilyName> FamilyNames();

// Empty name when the code is not one of ours.
FamilyName FindFamily(std::string_view code);

}  // namespace rankscope::families
