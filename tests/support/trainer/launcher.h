// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Starts the ranks and looks after them: when one fails the others are told to stop, and after a
// grace period killed. Single-threaded.
#pragma once

namespace sample_trainer {

// Runs argv[0] again `ranks` times, each with RANK and the other variables a launcher sets. Returns
// 0 when every rank did.
int Launch(int ranks, char** argv);

}  // namespace sample_trainer
