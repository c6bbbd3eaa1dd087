// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Deaths that follow from what else is known: what ends the processes that are left. Each function
// gives such causes the role of a cascade. Pure.
#pragma once

#include <vector>

#include "detectors/features/cause.h"

namespace rankscope::features {

// NCCL's watchdog ends its own process when a peer is gone: std::terminate with the loss in its
// what(), then SIGABRT. A rank that died by itself left no such words.
void DemoteAbortsOfSurvivors(std::vector<Cause>& causes);

// srun ends the step a while after the first of its tasks has ended (--wait): what it prints of
// that is what it prints of a cancelled step.
void DemoteWhatSrunDidToWhoStayed(std::vector<Cause>& causes);

// A call of MPI failed, or the program called MPI_Abort(): the launcher then kills all ranks. One
// that had died before the others is what the error is about, and stays.
void DemoteWhatFollowsAnMpiAbort(std::vector<Cause>& causes);

// A step that is cancelled is killed at once, or after KillWait. Where srun had already reported
// that a task had ended, the cancellation is what followed.
void DemoteWhatFollowsACancel(std::vector<Cause>& causes);

}  // namespace rankscope::features
