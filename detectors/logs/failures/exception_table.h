// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What an exception says about its own cause: the fault class of a start-up crash, and the sub-mode
// of any exception. Pure functions of the incident's type, words and place in the program; any
// thread.
#pragma once

#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

// Who has to act: "env" (packages, drivers, devices), "asset" (models, files, hubs, permissions),
// "data" (the content of a dataset), "config" (arguments, settings, the program itself).
std::string_view FaultClass(const Incident& incident);

// The same, empty where neither words nor type nor place tell and FaultClass falls back on
// "config".
std::string_view ToldFaultClass(const Incident& incident);

// Whether the exception would have come at the first use of what it names: a library, a driver, a
// capability of the GPU. A run that had trained had used it.
bool FailsAtFirstUse(const Incident& incident);

// Whether the program was refused host memory and said so by an exception: nobody was killed.
bool RefusesHostMemory(const Incident& incident);

// Whether the next try may not meet the fault: a server that was busy or out of reach.
bool IsTransient(const Incident& incident);

// missing_module: or one that does not fit. cuda_runtime: the driver or what is compiled for the
// GPU, before any kernel of the program faults. other: what these names do not cover, a missing
// implementation, a name error, an unknown attribute.
//
// missing_module | file_not_found | permission | bad_data | bad_config | asset_unavailable |
// host_memory | division_by_zero | device_mismatch | shape_mismatch | assertion | cuda_runtime |
// key_or_index | container | other
std::string_view ExceptionSub(const Incident& incident);

}  // namespace rankscope::logs
