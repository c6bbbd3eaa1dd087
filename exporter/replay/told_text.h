// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text that tells of errors and in which no program printed one: a list of changes, a run-book, a
// page of a manual, the source of a program that handles them. Pure.
#pragma once

#include <string_view>

namespace rankscope::replay {

// Whether all that `text`, a whole file, says of failures stands in items of lists, between quotes
// in source code, in blocks that a sentence introduces by "::", or with placeholders for what a
// program would print. False where it says nothing of failures, or shows a training.
bool TellsOfErrorsOnly(std::string_view text);

}  // namespace rankscope::replay
