// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job's throughput may be told in, for targets: by the names that `run --target` and the
// configuration use. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rankscope {

enum class Speed : uint8_t { kTokens, kSamples, kSteps, kMfu };
inline constexpr std::array<std::string_view, 4> kSpeedNames = {
    "tokens_per_second", "samples_per_second", "steps_per_second", "mfu"};

}  // namespace rankscope
