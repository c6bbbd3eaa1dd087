// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// argv -> one subcommand, here or in the companion.
#include <cstdio>
#include <cstring>

#include "exporter/cli/commands.h"
#include "exporter/cli/companion.h"
#include "exporter/version.h"

namespace {

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* what;
};

constexpr Command kCommands[] = {
    {"run", rankscope::cli::RunCommand, "run a command unchanged, keep its log, print a verdict"},
    {"serve", rankscope::cli::CompanionCommand,
     "the daemon: watch this node, serve /metrics and /verdict"},
    {"classify", rankscope::cli::ClassifyCommand, "judge log files"},
    {"progress", rankscope::cli::ProgressCommand, "print the training records of a log"},
    {"replay", rankscope::cli::ReplayCommand, "print the verdicts of a recording"},
    {"verdict", rankscope::cli::CompanionCommand, "print the verdicts of a running daemon"},
    {"watch", rankscope::cli::CompanionCommand,
     "follow jobs of Slurm to their ends, print their verdicts"},
    {"check", rankscope::cli::CompanionCommand,
     "validate the configuration, report what can be observed here"},
    {"list", rankscope::cli::CompanionCommand,
     "print a table: families, formats, shapes, sources, metrics ..."},
    {"explain", rankscope::cli::CompanionCommand,
     "print how a process was attributed to a job and rank"},
    {"deliver", rankscope::cli::CompanionCommand,
     "send the notifications that 'rankscope run' has left"},
};

void PrintUsage(FILE* out) {
  std::fputs("usage: rankscope COMMAND [ARGS...]\n\n", out);
  for (const Command& command : kCommands)
    std::fprintf(out, "  %-9s %s\n", command.name, command.what);
  std::fputs("\n`rankscope COMMAND --help` describes the options.\n", out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    PrintUsage(stderr);
    return 2;
  }
  for (const Command& command : kCommands) {
    if (std::strcmp(argv[1], command.name) == 0) return command.run(argc - 1, argv + 1);
  }
  if (std::strcmp(argv[1], "--version") == 0 || std::strcmp(argv[1], "version") == 0) {
    std::printf("rankscope, version %s\n", rankscope::kVersionText);
    return 0;
  }
  if (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0 ||
      std::strcmp(argv[1], "help") == 0) {
    PrintUsage(stdout);
    return 0;
  }
  std::fprintf(stderr, "rankscope: unknown command '%s'; `rankscope --help` lists them\n", argv[1]);
  return 2;
}
