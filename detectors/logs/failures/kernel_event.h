// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel's log says of a card, read as the same line in a job's text is. Pure, any thread.
#pragma once

#include <optional>

#include "detectors/logs/record.h"
#include "detectors/model/observation.h"

namespace rankscope::logs {

// nullopt for events that are no Xid. Without a text, as the driver's library tells them, the code
// and the card are all.
std::optional<Incident> ReadKernelEvent(const KernelEvent& event);

}  // namespace rankscope::logs
