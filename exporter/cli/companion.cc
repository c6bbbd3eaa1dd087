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

std::vector<std::string> CompanionPaths() {
  std::array<char, PATH_MAX> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return {};
  std::string folder = self.data();
  folder.resize(folder.rfind('/') + 1);
  std::vector<std::string> paths;
  for (const char* place : kPlaces) paths.push_back(folder + place + kCompanion);
  return paths;
}

int CompanionCommand(int argc, char** argv) {
  const std::vector<std::string> paths = CompanionPaths();
  if (paths.empty()) {
    std::fprintf(stderr, "rankscope %s: /proc/self/exe: %s; mount /proc, or start %s itself\n",
                 argv[0], std::strerror(errno), kCompanion);
    return 1;
  }
  char name[] = "rankscope";
  std::vector<char*> arguments = {name};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  int error = 0;
  for (const std::string& path : paths) {
    execv(path.c_str(), arguments.data());
    // What is there and cannot be started says more than what is not there.
    if (error == 0 || errno != ENOENT) error = errno;
  }
  std::fprintf(stderr,
               "rankscope %s: there is neither %s nor %s, or it cannot be executed: %s; keep it "
               "beside rankscope\n",
               argv[0], paths[0].c_str(), paths[1].c_str(), std::strerror(error));
  return 1;
}

}  // namespace rankscope::cli
