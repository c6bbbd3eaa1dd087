// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/single_program.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "detectors/attribution/launchers.h"

namespace rankscope::windows {
namespace {

// What shows the output of another node's programs, or of a container's, as its own, besides the
// launchers of ranks.
constexpr std::array<std::string_view, 16> kRelays = {
    "ssh",    "rsh",   "pdsh",  "clush",      "kubectl", "docker", "podman", "ray",
    "raylet", "jsrun", "aprun", "horovodrun", "flux",    "prun",   "dask",   "sattach"};

bool IsPython(std::string_view command) {
  std::string_view program = command.substr(0, command.find(' '));
  program = program.substr(program.rfind('/') + 1);
  return program.starts_with("python");
}

}  // namespace

void SingleProgram::OnStart(const attribution::ProcessInfo& process, bool command) {
  if (command) python_ = IsPython(process.command);
  launches_ = launches_ || !attribution::LauncherIn(process.comm, process.command).empty() ||
              std::find(kRelays.begin(), kRelays.end(), process.comm) != kRelays.end();
}

}  // namespace rankscope::windows
