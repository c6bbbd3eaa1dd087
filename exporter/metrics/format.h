// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The exposition formats that /metrics speaks. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rankscope::metrics {

enum class Format : uint8_t { kText, kOpenMetrics, kProtobuf };

// By Format; label values and the names in documentation.
inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "openmetrics", "protobuf"};

}  // namespace rankscope::metrics
