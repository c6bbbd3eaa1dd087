// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who sends a signal, as a word of a closed list: kernel, itself, launcher (of the same job), job
// (another process of it), scheduler, runtime (of containers), oom_daemon, other_user, same_user.
// Pure.
#pragma once

#include <string_view>

#include "detectors/attribution/attribution.h"
#include "detectors/model/observation.h"

namespace rankscope::windows {

// `sender`: what attribution knows of it; null = no process of a job.
std::string_view SenderKind(const SignalSent& signal, const attribution::ProcessInfo& target,
                            const attribution::ProcessInfo* sender);

}  // namespace rankscope::windows
