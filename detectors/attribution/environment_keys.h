// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which environment variables may leave a process: identity of job, step and rank, the GPUs it was
// given, and the settings that failures are explained with. One table for every source that reports
// processes; values still pass RedactValue. Any thread.
#pragma once

#include <string_view>

namespace rankscope::attribution {

bool IsAllowedEnvironmentKey(std::string_view key);

}  // namespace rankscope::attribution
