// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope verdict [JOB]`: what the daemon of this node thinks now.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "exporter/cli/commands.h"
#include "exporter/cli/daemon_client.h"

namespace rankscope::cli {

int VerdictCommand(int argc, char** argv) {
  CLI::App app(
      "Print the verdicts of a running rankscope daemon. Exit status: 0, 1 no such job or no "
      "daemon, 2 usage.",
      "rankscope verdict");
  std::string job;
  std::string address = kDefaultAddress;
  std::string format = "text";
  app.add_option("JOB", job, "Job id; without it, all jobs known");
  app.add_option("--address", address, "HOST:PORT of the daemon")->capture_default_str();
  app.add_option("--format", format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::string target = job.empty() ? "/verdict" : "/verdict?job_id=" + QueryValue(job);
  const auto answer =
      HttpGet(address, target, format == "json" ? "application/json" : "text/plain");
  if (!answer) {
    std::fprintf(stderr, "rankscope verdict: %s\n", answer.error().c_str());
    return 1;
  }
  if (answer->status == 404 && !job.empty()) {
    std::fprintf(stderr,
                 "rankscope verdict: the daemon at %s knows no job '%s'; `rankscope verdict` lists "
                 "those it knows\n",
                 address.c_str(), job.c_str());
    return 1;
  }
  if (answer->status != 200) {
    std::fprintf(stderr, "rankscope verdict: %s answers %d: %s\n", address.c_str(), answer->status,
                 answer->body.c_str());
    return 1;
  }
  std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
  if (!answer->body.empty() && answer->body.back() != '\n') std::fputc('\n', stdout);
  return 0;
}

}  // namespace rankscope::cli
