// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who sent a signal, for the families of runs that a signal ended. Pure.
#pragma once

#include <string_view>

#include "detectors/families/family.h"

namespace rankscope::families {

// A field of the incident; empty where it has none.
std::string_view FieldOf(const features::Cause& cause, std::string_view key);

// The kernel's record of the signal that the primary cause speaks of; null where it has none.
const features::Cause* FindSender(const features::JobFeatures& f, const features::Cause& primary);

// Whether it was the scheduler or the job's launcher: how a run is ended, and no reason.
bool IsCleanUp(const features::Cause& sent);
// Whether one process outside of the job killed all ranks that ran here, and not one of them.
bool KilledTheRun(const features::JobFeatures& f, const features::Cause& primary);
// Who asked the scheduler for the end, by its record; empty: it does not say.
std::string_view Canceller(const features::JobFeatures& f);

// Whether it is open who asked for the end: no record names him, the scheduler gives no reason of
// its own, and the kernel saw no sender outside of the job.
bool CancellerIsOpen(const features::JobFeatures& f);

// Whose doing it was: domain, component, advice, and the sender's values for the sentences.
void JudgeSender(const features::JobFeatures& f, const features::Cause& sent, Finding& finding);

}  // namespace rankscope::families
