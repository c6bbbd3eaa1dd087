// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether the reader of YAML may see a text: it recurses, its errors say little about binary data,
// and some texts that are no YAML keep it busy for ever. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::exporter {

// A configuration is below 4 KiB; what is larger is not one.
inline constexpr size_t kMaxConfigBytes = 256 * 1024;

struct ShapeProblem {
  int line = -1;  // from 0; -1: of the whole text
  std::string what;
};

std::optional<ShapeProblem> CheckYamlShape(std::string_view text);

}  // namespace rankscope::exporter
