// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What one rank does: joins the process group, trains, prints (rank 0 only), makes its fault
// happen. Single-threaded.
#pragma once

#include "tests/support/trainer/options.h"

namespace sample_trainer {

// Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; `listen_fd` is rank 0's rendezvous socket.
// Returns the exit status; throws std::runtime_error for what the program reports as its error.
int TrainAsRank(const Options& options, int rank, int listen_fd);

}  // namespace sample_trainer
