// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a command line starts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankscope::windows {

// Ranks of a distributed training: torchrun, accelerate, deepspeed and their like. Not srun and
// mpirun, which start programs of every kind.
bool StartsTraining(const std::vector<std::string>& argv);

// Whether a command line calls a shell before any program that trains ("bash -c ...", "srun x.sh"),
// or nothing that is known, so that its status may be another's than that program's. A shell that
// is given a single call becomes the program; pipefail gives the status of all of a pipe.
bool MayCallAShell(std::string_view command);

}  // namespace rankscope::windows
