// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether one node was in all runs of a job that failed soon. Private to features; pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/scheduler_features.h"
#include "detectors/windows/scheduler_history.h"

namespace rankscope::features {

// Of three such runs at least, each of several nodes: a job that fits on one node only is always on
// that one. Ends that somebody decided (a preemption, a cancellation, the time limit) say nothing
// of nodes; a run that lasted or ended well on the node speaks for it.
void DescribeSuspectNode(const windows::SchedulerHistory& history, Citer& citer,
                         SuspectNode& suspect);

}  // namespace rankscope::features
