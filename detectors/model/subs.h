// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The names of subs that code compares: a misspelled one does not compile. The subs that are only
// printed stay where they are assigned.
#pragma once

#include <string_view>

namespace rankscope::subs {

#define SUB(constant, text) inline constexpr std::string_view constant = text;
#include "detectors/model/subs.inc"
#undef SUB

}  // namespace rankscope::subs
