// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/launchers.h"

#include <algorithm>
#include <array>

namespace rankscope::attribution {
namespace {

struct LauncherRow {
  std::string_view word;  // a program, or a module up to a dot
  std::string_view name;
};
constexpr std::array<LauncherRow, 12> kLaunchers = {{
    {"torchrun", "torchrun"},
    {"torch.distributed.run", "torchrun"},
    {"torch.distributed.launch", "torchrun"},
    {"accelerate", "accelerate"},
    {"deepspeed", "deepspeed"},
    {"composer", "composer"},
    {"mpirun", "mpirun"},
    {"mpiexec", "mpirun"},
    {"orterun", "mpirun"},
    {"orted", "mpirun"},
    {"prted", "mpirun"},
    {"srun", "srun"},
}};

std::string_view BaseName(std::string_view word) {
  return word.substr(word.rfind('/') + 1);
}

std::string_view LauncherOf(std::string_view word) {
  word = BaseName(word);
  // Sites wrap it in a file of their own ("torchrun_debian.py").
  if (word.starts_with("torchrun")) return "torchrun";
  for (const LauncherRow& row : kLaunchers) {
    if (word == row.word) return row.name;
    if (word.starts_with(row.word) && word[row.word.size()] == '.' && !word.ends_with(".py"))
      return row.name;  // accelerate.commands.launch
  }
  return {};
}

std::string_view TakeWord(std::string_view& rest) {
  const size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest = space == rest.npos ? std::string_view() : rest.substr(space + 1);
  return word;
}

}  // namespace

std::string_view LauncherIn(std::string_view comm, std::string_view command) {
  if (const std::string_view name = LauncherOf(comm); !name.empty()) return name;
  while (!command.empty()) {
    const std::string_view word = TakeWord(command);
    if (const std::string_view name = LauncherOf(word); !name.empty()) return name;
    if (word.ends_with(".py")) return {};
  }
  return {};
}

bool IsSlurmsOwn(std::string_view comm, std::string_view command) {
  if (comm == "slurmstepd" || command.starts_with("slurmstepd: [")) return true;
  if (command == "sleep 100000000") return true;  // src/slurmd/slurmstepd: of the extern step
  TakeWord(command);
  return BaseName(TakeWord(command)) == "slurm_script";
}

bool IsPoolWorker(std::string_view command) {
  return command.find("from multiprocessing.") != command.npos;
}

bool IsShell(std::string_view comm) {
  constexpr std::array<std::string_view, 8> kShells = {"sh",  "bash", "dash", "zsh",
                                                       "ksh", "csh",  "tcsh", "fish"};
  return std::find(kShells.begin(), kShells.end(), comm) != kShells.end();
}

}  // namespace rankscope::attribution
