// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a command line starts ranks of a distributed training: torchrun, accelerate, deepspeed
// and their like. Not srun and mpirun, which start programs of every kind. Pure.
#pragma once

#include <string>
#include <vector>

namespace rankscope::windows {

bool StartsTraining(const std::vector<std::string>& argv);

}  // namespace rankscope::windows
