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

// missing_module | file_not_found | permission | bad_data | bad_config | asset_unavailable |
// host_memory | division_by_zero | device_mismatch | shape_mismatch | assertion | cuda_runtime |
// key_or_index | other
std::string_view ExceptionSub(const Incident& incident);

}  // namespace rankscope::logs
