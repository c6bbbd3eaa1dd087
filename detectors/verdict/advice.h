// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What to do follows from the cause, not from the family: a fabric that is not ready and a missing
// package both end a program at its start. This table finds causes whose remedy differs from that
// of their family and sub. Pure; any thread.
#pragma once

#include <string_view>

#include "detectors/families/family.h"

namespace rankscope::engine {

// The row of the remedies for what began the finding, empty where that of its sub fits. `code` is
// the finding's family.
std::string_view AdviceOf(std::string_view code, const families::Finding& finding,
                          const features::JobFeatures& f);

}  // namespace rankscope::engine
