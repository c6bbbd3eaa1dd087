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

// Whose doing it was, by `by`, a word of windows/signal_sender.h: domain, component, advice, and
// the sender's values for the sentences.
void JudgeSender(const features::Cause& sent, std::string_view by, Finding& finding);

}  // namespace rankscope::families
