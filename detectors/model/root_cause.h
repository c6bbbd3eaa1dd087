// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sub of the entry of a launcher's summary that the launcher calls the root cause. It often names a
// survivor.
#pragma once

#include <string_view>

namespace rankscope {

inline constexpr std::string_view kRootCause = "root_cause";

}  // namespace rankscope
