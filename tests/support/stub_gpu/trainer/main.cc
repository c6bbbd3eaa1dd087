// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// stub_trainer: ranks that call the stub CUDA runtime and NCCL as a script says, for tests of what
// watches such calls. Needs no card, no Python.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/support/stub_gpu/trainer/rank.h"
#include "tests/support/stub_gpu/trainer/script.h"
#include "tests/support/trainer/launcher.h"

namespace stub_trainer {
namespace {

Script Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::invalid_argument("cannot open " + path);
  return ReadScript(file);
}

}  // namespace
}  // namespace stub_trainer

int main(int argc, char** argv) {
  using namespace stub_trainer;
  if (argc != 2 || std::string(argv[1]) == "--help") {
    std::fputs(kUsage, argc == 2 ? stdout : stderr);
    return argc == 2 ? 0 : 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Script script;
  try {
    script = Read(argv[1]);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "stub_trainer: %s: %s\n", argv[1], error.what());
    return 2;
  }
  const char* rank = std::getenv("RANK");
  const char* listen_fd = std::getenv("SAMPLE_TRAINER_LISTEN_FD");
  const bool launcher = rank == nullptr || listen_fd == nullptr;
  try {
    if (launcher) return sample_trainer::Launch(static_cast<int>(script.ranks), argv);
    return TrainAsRank(script, std::stoi(rank), std::stoi(listen_fd));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: RuntimeError: %s\n",
                 launcher ? "stub_trainer" : ("rank " + std::string(rank)).c_str(), error.what());
    return 1;
  }
}
