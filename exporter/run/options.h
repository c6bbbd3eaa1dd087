// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Arguments and environment of `rankscope run` -> Options. By hand: it stands between the user's
// command and its start. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "detectors/model/result.h"
#include "detectors/model/time.h"
#include "exporter/run/wrapper.h"

namespace rankscope::run {

extern const char kUsage[];

struct Arguments {
  bool help = false;
  Options options;
};

// `argv[0]` is "run"; `uid` and `random` make the job id where neither the flag nor Slurm gives
// one: run-<uid>-<8 hex>, which no other user may use.
Result<Arguments> ParseArguments(char* const* argv, char* const* environment, uint32_t uid,
                                 uint32_t random);

// "2s", "500ms", "1.5m", "3" (seconds).
std::optional<Duration> ParseDuration(std::string_view text);

}  // namespace rankscope::run
