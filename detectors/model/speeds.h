// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job's throughput may be told in, for targets: by the names that `run --target` and the
// configuration use. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope {

enum class Speed : uint8_t { kTokens, kSamples, kSteps, kMfu };
inline constexpr std::array<std::string_view, 4> kSpeedNames = {
    "tokens_per_second", "samples_per_second", "steps_per_second", "mfu"};

struct Target {
  Speed of = Speed::kTokens;
  double value = 0;  // per second; of kMfu a share
};

// From `tokens_per_second=12000`; nullopt: no such name, or not a finite number above 0 (of mfu: up
// to 1).
std::optional<Target> ReadTarget(std::string_view text);

}  // namespace rankscope
