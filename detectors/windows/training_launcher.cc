// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/training_launcher.h"

#include <string_view>

#include "detectors/attribution/launchers.h"

namespace rankscope::windows {

bool StartsTraining(const std::vector<std::string>& argv) {
  std::string command;
  for (const std::string& word : argv) command.append(command.empty() ? "" : " ").append(word);
  const std::string_view launcher = attribution::LauncherIn({}, command);
  return !launcher.empty() && launcher != "srun" && launcher != "mpirun";
}

}  // namespace rankscope::windows
