// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope explain PID`: how a process came to its job and its place in it.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>

#include "exporter/cli/commands.h"
#include "exporter/cli/daemon_client.h"

namespace rankscope::cli {

int ExplainCommand(int argc, char** argv) {
  CLI::App app(
      "Print how a process was attributed to a job and a rank: each fact, its origin, and origins "
      "that disagree. Exit status: 0; 1 if the process is unknown or no daemon answers; 2 for "
      "wrong usage.",
      "rankscope explain");
  int32_t pid = 0;
  std::string address = kDefaultAddress;
  constexpr int kPidMax = 1 << 22;  // PID_MAX_LIMIT of 64-bit kernels
  app.add_option("PID", pid, "Id of the process")->required()->check(CLI::Range(1, kPidMax));
  app.add_option("--address", address, "Address of the daemon, HOST:PORT or https://HOST:PORT")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto answer = AskDaemon(address, "/explain?pid=" + std::to_string(pid), "text/plain");
  if (!answer) {
    std::fprintf(stderr, "rankscope explain: %s\n", answer.error().c_str());
    return 1;
  }
  if (answer->status != 200) {
    std::fprintf(stderr,
                 "rankscope explain: the daemon at %s knows nothing of process %d; it tracks "
                 "processes with a rank's environment, in a Slurm job's cgroup, under `rankscope "
                 "run`, or with a GPU open\n",
                 address.c_str(), pid);
    return 1;
  }
  std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
  return 0;
}

}  // namespace rankscope::cli
