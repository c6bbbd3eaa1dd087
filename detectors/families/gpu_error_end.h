// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of gpu_hardware and gpu_app_fault and network_fault and storage_fault share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

// cudaErrorUnknown comes from the driver; a program's own faults have names.
bool IsUnknownDriverError(const features::JobFeatures& f);

// GPUs of one node that cannot reach each other: no fault of a kernel and none of a card.
bool IsPeerAccess(const logs::Incident& incident);

// Why a family whose text is there is not the answer: `nothing` where it is not there.
RuledOut NotTheEnd(const features::JobFeatures& f, bool (*mine)(const logs::Incident&),
                   std::string_view nothing);

}  // namespace rankscope::families
