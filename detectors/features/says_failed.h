// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a line that no shape knows tells of an end that was not meant: at a level of errors, or
// in the words of those who speak only of such ends (shells, the C library, launchers). It accuses
// nobody: a run whose last word it is has not been seen to end well. Pure.
#pragma once

#include <string_view>

namespace rankscope::features {

// `lower` is `text` in lower case.
bool SaysFailed(std::string_view text, std::string_view lower);

// The same of the very last line, where words suffice that another line may hold by chance.
bool EndsAbruptly(std::string_view text, std::string_view lower);

}  // namespace rankscope::features
