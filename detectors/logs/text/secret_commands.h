// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Programs that take a password on their command line, under flags that mean something else to
// other programs (-p is a port for most): which part of a command is one. For the redactor;
// stateless, any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace rankscope::logs {

// The secret of an argument, or of the one after it: from `begin` on; npos = there is none.
struct CommandSecret {
  static constexpr size_t kNone = std::string_view::npos;
  size_t begin = kNone;
  bool in_next = false;  // in the next argument, all of it but for `after`
  char after = 0;        // what the name before the secret ends with: "user:"; 0 = no name
};

// Whether this is a program of the table; its name without a path.
bool TakesSecrets(std::string_view program);

// Of an argument of such a program; `first`: it is the first one. What follows may be another
// program's: sshpass -p SECRET ssh -p 22.
CommandSecret FindCommandSecret(std::string_view program, std::string_view argument, bool first);

// Where in the value of a flag the secret begins; kNone = it has none.
size_t SecretIn(std::string_view value, char after);

}  // namespace rankscope::logs
