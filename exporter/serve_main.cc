// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// rankscope-serve: the commands of `rankscope` that need the daemon's libraries (cli/companion.h).
#include <cstdio>

#include "exporter/cli/commands.h"
#include "exporter/cli/companion.h"

namespace {

constexpr rankscope::cli::Command kCommands[] = {
    {"serve", rankscope::cli::ServeCommand},     {"verdict", rankscope::cli::VerdictCommand},
    {"check", rankscope::cli::CheckCommand},     {"list", rankscope::cli::ListCommand},
    {"explain", rankscope::cli::ExplainCommand}, {"watch", rankscope::cli::WatchCommand},
    {"deliver", rankscope::cli::DeliverCommand},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const command = argc > 1 ? rankscope::cli::FindCommand(kCommands, argv[1]) : nullptr;
  if (command == nullptr) {
    std::fputs("rankscope-serve: a part of rankscope; start that\n", stderr);
    return 2;
  }
  return command->run(argc - 1, argv + 1);
}
