// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who computes on a GPU. The entries of the list have had 16, 24 and 32 bytes, the last under an
// unchanged symbol (drivers 535.43 to 535.86): which, is seen from how much of the list the library
// has written. The device's worker only.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "detectors/model/gpu_reading.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

// More than share a GPU: MPS serves 48.
inline constexpr size_t kMaxProcesses = 256;

using ProcessFunction = Return (*)(Device, uint32_t*, void*);

// Absent where the GPU does not tell; empty where nobody computes.
std::optional<std::vector<GpuProcess>> ReadProcesses(Session& session,
                                                     ProcessFunction Functions::*member);

// How long each of `count` entries is, in a list that was filled with `filler` before; 0 = cannot
// be told.
size_t EntryBytes(std::span<const std::byte> list, size_t count, std::byte filler);

}  // namespace rankscope::collectors::nvml
