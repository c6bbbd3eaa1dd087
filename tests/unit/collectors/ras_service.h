// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A RAS service for tests.
#pragma once

#include <arpa/inet.h>
#include <unistd.h>

#include <string>

#include "exporter/nccl/ras_listener.h"
#include "tests/support/loopback_service.h"

namespace rankscope::collectors {

class RasService : public LoopbackService {
 public:
  using LoopbackService::LoopbackService;

  ListeningSocket socket_at() const {
    const uint32_t loopback = htonl(INADDR_LOOPBACK);
    return {false, std::string(reinterpret_cast<const char*>(&loopback), 4), port(), getuid(), 777};
  }

  // As NCCL answers: one line each, and a report with the end of the connection.
  static Serve Reporting(std::string report, bool json) {
    return [report = std::move(report), json](int fd) {
      for (;;) {
        const std::string line = Hear(fd);
        if (line.starts_with("CLIENT PROTOCOL")) {
          Say(fd, "SERVER PROTOCOL 2\n");
        } else if (line.starts_with("TIMEOUT")) {
          Say(fd, "OK\n");
        } else if (line.starts_with("SET FORMAT")) {
          Say(fd, json ? "OK\n" : "ERROR: Unknown command '" + line + "'\n");
        } else if (line == "VERBOSE STATUS") {
          Say(fd, report);
          return;
        } else {
          return;
        }
      }
    };
  }
};

// The text of NCCL 2.26 for a job of four ranks in one communicator; `warnings` after it.
inline std::string RasText(const std::string& errors, const std::string& warnings) {
  return "NCCL version 2.26.2 compiled with CUDA 12.6\n"
         "CUDA runtime version 12060, driver version 12060\n\n"
         "Job summary\n===========\n\n"
         "  Nodes  Processes         GPUs  Processes     GPUs\n"
         "(total)   per node  per process    (total)  (total)\n"
         "      1          4            1          4        4\n\n"
         "Communicators... (0.00s)\n=============\n\n"
         "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
         "    #  in group  per comm  per node  per comm  in group\n"
         "    0         1         1         4         4         4   RUNNING  " +
         errors + "\n\nErrors\n======\n\nWarnings\n========\n\n" + warnings;
}

inline std::string RasMismatch(int64_t most, int64_t behind, int32_t pid) {
  return RasText("MISMATCH",
                 "#0-0 (27a079b828ff1a75) MISMATCH\n"
                 "  Communicator ranks have different AllReduce operation counts\n"
                 "  3 ranks have launched up to operation " +
                     std::to_string(most) + "\n  Rank 2 has launched up to operation " +
                     std::to_string(behind) + " -- GPU 2 managed by process " +
                     std::to_string(pid) + " on node 10.0.0.1\n");
}

}  // namespace rankscope::collectors
