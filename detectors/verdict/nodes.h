// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The nodes that a verdict concerns: those of the culprits, else those of the job. Pure.
#pragma once

#include <string>
#include <vector>

#include "detectors/verdict/verdict_builder.h"

namespace rankscope::engine {

// Of a job with more nodes there is one entry, in the scheduler's short form.
inline constexpr size_t kMaxNodesListed = 256;

// Never the observer's own node where the job is known to have run elsewhere, and never a part of
// the culprits' nodes: where one of them is not known, it is the job's nodes.
std::vector<std::string> NodesConcerned(const VerdictContext& context);

}  // namespace rankscope::engine
