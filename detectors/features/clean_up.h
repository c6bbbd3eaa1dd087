// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Deaths that follow from what else is known: what ends the processes that are left. Each function
// gives such causes the role of a cascade. Pure.
#pragma once

#include <vector>

#include "detectors/features/cause.h"
#include "detectors/windows/step_table.h"

namespace rankscope::features {

// Deaths by which somebody, or something, ends the processes that are left.
void DemoteCleanUp(std::vector<Cause>& causes);

// A script that puts its own job back into the queue when its program has failed: the program's
// error is what there is to know. The accounting says of the step that trained that it failed,
// which it does not say of one that Slurm ended.
void DemoteARequeueAfterAFailure(std::vector<Cause>& causes, const windows::StepTable& steps);

}  // namespace rankscope::features
