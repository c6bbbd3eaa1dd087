// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sentences for what is seen from below the text; one file a room. Pure; private to wording.
#pragma once

#include <string>

#include "detectors/features/evidence.h"

namespace rankscope::engine {

std::string NetworkText(const features::Evidence& evidence);
std::string SchedulerText(const features::Evidence& evidence);
std::string StorageText(const features::Evidence& evidence);
std::string ResumeText(const features::Evidence& evidence);
std::string WaitText(const features::Evidence& evidence);
std::string LaunchText(const features::Evidence& evidence);
std::string CollectiveText(const features::Evidence& evidence);
std::string ReportText(const features::Evidence& evidence);
std::string GpuText(const features::Evidence& evidence);
std::string XidText(const features::Evidence& evidence);

}  // namespace rankscope::engine
