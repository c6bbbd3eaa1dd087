// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel's log of the node adds to other families. Pure.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

// The NVSwitch error, fatal to its device, under which `cause` (a CUDA error that names no fault of
// the program, a collective that timed out, a peer that was lost) came about; null where there is
// none.
const features::NodeFault* SwitchFailedUnder(const features::JobFeatures& f,
                                             const features::Cause& cause);

// The file server that has not answered for `seconds` or longer while the run stands still in calls
// on files; null where there is none.
const features::NodeFault* HangingFileServer(const features::JobFeatures& f, double seconds);

// Fatal errors that the PCIe bus logged shortly before `t`, of the card or of one that is not
// named.
features::EvidenceRef BusErrorBefore(const features::JobFeatures& f, std::string_view bus_id,
                                     Timestamp t);

bool IsAround(Timestamp fault, Timestamp incident);

// What a card or a fabric that fails looks like from inside.
bool MayFollowHardware(const logs::Incident& incident);

// What CUDA says of a kernel on a card that falls off the bus may be what it says of a kernel that
// fails by itself ("unspecified launch failure"): such words of `ranks`, whose card it is, around
// the moment in which the driver lost it.
bool FollowsALostCard(const features::JobFeatures& f, const features::Cause& cause,
                      const std::vector<int32_t>& ranks);

}  // namespace rankscope::families
