// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/training_launcher.h"

#include "detectors/attribution/launchers.h"

namespace rankscope::windows {

bool StartsTraining(const std::vector<std::string>& argv) {
  std::string command;
  for (const std::string& word : argv) command.append(command.empty() ? "" : " ").append(word);
  const std::string_view launcher = attribution::LauncherIn({}, command);
  return !launcher.empty() && launcher != "srun" && launcher != "mpirun";
}

bool MayCallAShell(std::string_view command) {
  std::string_view rest = command;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    std::string_view word = rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    word = word.substr(word.rfind('/') + 1);
    if (word.starts_with("python") || word.ends_with(".py")) return false;
    if (word.ends_with(".sh") || word == "slurm_script") return true;
    if (!attribution::IsShell(word)) continue;
    const bool words = rest.find("-c ") != std::string_view::npos;
    if (rest.find("pipefail") != std::string_view::npos) return false;
    return !words || rest.find_first_of("|;&\n") != std::string_view::npos;
  }
  // No program that is known: what srun starts may be a script.
  const std::string_view launcher = attribution::LauncherIn({}, command);
  return launcher.empty() || launcher == "srun" || launcher == "mpirun";
}

}  // namespace rankscope::windows
