// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The program is two files. `rankscope`, which users start, is linked statically, because whatever
// it loads is paid by every wrapped command; `rankscope-serve`, beside it or in ../lib/rankscope,
// holds the commands that need the daemon's libraries (HTTP, YAML, metrics, the resolver). Main
// thread, before any other.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::cli {

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);  // argv[0] is the command's name
};

// The command called `name`; nullptr: none.
const Command* FindCommand(std::span<const Command> commands, std::string_view name);

// Where `rankscope-serve` may be; empty where /proc is not mounted.
std::vector<std::string> CompanionPaths();

// Becomes `rankscope-serve` with the same command and arguments. Returns an exit status only when
// it cannot.
int CompanionCommand(int argc, char** argv);

}  // namespace rankscope::cli
