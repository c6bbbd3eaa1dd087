// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The page at `/node`: this node's GPUs, the sources of evidence with the reason why one is not up,
// and what Slurm's controller tells where it is asked. Everything that came from the world is
// escaped. Pure; any thread.
#pragma once

#include <string>

#include "exporter/metrics/published.h"

namespace rankscope::web {

std::string NodePage(const metrics::Published& published);

}  // namespace rankscope::web
