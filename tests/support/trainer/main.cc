// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
//
// sample_trainer: a training run that is small and still real: a launcher and its ranks, processes
// that form a group over TCP, a model that learns, checkpoints, progress lines, and failures on
// demand. Needs neither Python nor a GPU.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/trainer/launcher.h"
#include "tests/support/trainer/options.h"
#include "tests/support/trainer/rank.h"

int main(int argc, char** argv) {
  using namespace sample_trainer;
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines appear as they are printed, into a pipe too
  Options options;
  try {
    options = ParseOptions(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "sample_trainer: %s\n%s", error.what(), kUsage);
    return 2;
  }
  // Set by our own launcher for its ranks; RANK alone may come from a launcher around this one.
  const char* rank = std::getenv("RANK");
  const char* listen_fd = std::getenv("SAMPLE_TRAINER_LISTEN_FD");
  try {
    if (listen_fd == nullptr || rank == nullptr) return Launch(options.ranks, argv);
    return TrainAsRank(options, std::stoi(rank), std::stoi(listen_fd));
  } catch (const std::exception& error) {
    if (listen_fd == nullptr || rank == nullptr) {
      std::fprintf(stderr, "sample_trainer: %s\n", error.what());
    } else {
      std::fprintf(stderr, "rank %s: error: %s\n", rank, error.what());
    }
    return 1;
  }
}
