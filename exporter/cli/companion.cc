// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/cli/companion.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace rankscope::cli {
namespace {

constexpr char kCompanion[] = "rankscope-serve";

}  // namespace

const Command* FindCommand(std::span<const Command> commands, std::string_view name) {
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int CompanionCommand(int argc, char** argv) {
  std::array<char, PATH_MAX> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) {
    std::fprintf(stderr, "rankscope %s: /proc/self/exe: %s; mount /proc, or start %s itself\n",
                 argv[0], std::strerror(errno), kCompanion);
    return 1;
  }
  std::string path = self.data();
  path.replace(path.rfind('/') + 1, std::string::npos, kCompanion);
  char name[] = "rankscope";
  std::vector<char*> arguments = {name};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  execv(path.c_str(), arguments.data());
  std::fprintf(stderr,
               "rankscope %s: %s: %s; keep rankscope and rankscope_serve in one directory\n",
               argv[0], path.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace rankscope::cli
