// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Processes of a job that start ranks or wait for them and are none, by their command. Pure. Any
// thread.
#pragma once

#include <string_view>

namespace rankscope::attribution {

// How a launcher's job is known where nothing but its ranks names it, and then the launcher's name:
// it was met after it had started them.
inline constexpr std::string_view kByItsRanks = "its children are ranks of ";

// The launcher that a command runs: torchrun, accelerate, deepspeed, mpirun, srun, ...; empty:
// none. What comes behind a program's own name are its arguments: "python train.py --launcher srun"
// is no launcher.
std::string_view LauncherIn(std::string_view comm, std::string_view command);

// slurmstepd, the script that sbatch was given, and the sleep that holds a job's extern step.
bool IsSlurmsOwn(std::string_view comm, std::string_view command);

// What Python's multiprocessing starts: a data loader's worker, its server or its tracker.
bool IsPoolWorker(std::string_view command);

bool IsShell(std::string_view comm);

}  // namespace rankscope::attribution
