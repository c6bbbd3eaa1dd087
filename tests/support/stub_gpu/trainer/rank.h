// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One rank of the stub trainer: meets the others, then steps as the script says. Throws
// std::runtime_error where it cannot go on.
#pragma once

#include "tests/support/stub_gpu/trainer/script.h"

namespace stub_trainer {

int TrainAsRank(const Script& script, int rank, int listen_fd);

}  // namespace stub_trainer
