// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// gzip at level 1: a page of metrics shrinks to an eighth at a third of the CPU of level 6, which
// would gain another sixth. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rankscope::http {

// Below this an answer fits one packet anyway.
inline constexpr size_t kWorthCompressing = 1200;

// nullopt: no memory; the answer goes out as it is.
std::optional<std::string> Gzip(std::string_view bytes);

}  // namespace rankscope::http
