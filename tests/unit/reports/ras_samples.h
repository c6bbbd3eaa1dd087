// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How the text of NCCL's RAS begins: a job of 32 processes on 4 nodes.
#pragma once

#include <string>

namespace rankscope::reports {

inline const std::string kRasHeader =
    "NCCL version 2.26.2 compiled with CUDA 12.6\n"
    "CUDA runtime version 12060, driver version 12060\n\n"
    "Job summary\n===========\n\n"
    "  Nodes  Processes         GPUs  Processes     GPUs\n"
    "(total)   per node  per process    (total)  (total)\n"
    "      4          8            1         32       32\n\n"
    "Communicators... (2.05s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n";

}  // namespace rankscope::reports
