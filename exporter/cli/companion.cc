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
// From the folder of `rankscope`: where it is built and unpacked, and where packages put it.
constexpr const char* kPlaces[] = {"", "../lib/rankscope/"};

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
  std::string folder = self.data();
  folder.resize(folder.rfind('/') + 1);
  char name[] = "rankscope";
  std::vector<char*> arguments = {name};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  int error = 0;
  for (const char* place : kPlaces) {
    const std::string path = folder + place + kCompanion;
    execv(path.c_str(), arguments.data());
    // What is there and cannot be started says more than what is not there.
    if (error == 0 || errno != ENOENT) error = errno;
  }
  std::fprintf(stderr,
               "rankscope %s: %s is neither in %s nor in %s%s, or cannot be executed: %s; keep it "
               "beside rankscope\n",
               argv[0], kCompanion, folder.c_str(), folder.c_str(), kPlaces[1],
               std::strerror(error));
  return 1;
}

}  // namespace rankscope::cli
