// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A pseudo-terminal in place of a pipe where our own stream is a terminal, so that the command's
// progress bars, colours and line buffering are those of a terminal.
//
// It is an output only. Standard input, the controlling terminal, session and process group stay
// the user's own: Ctrl-C and job control need no help of ours, and a wrapper that is killed leaves
// no terminal in raw mode behind. The price is a full-screen editor, which would set modes of the
// output's terminal and read keys from the input's. Main thread.
#pragma once

#include <optional>

#include "exporter/loop/owned_fd.h"

namespace rankscope::run {

struct Pty {
  OwnedFd master;  // what a pipe's read end is; read gives EIO where a pipe gives its end
  OwnedFd slave;   // what a pipe's write end is
};

// A pty of `terminal`'s size and modes, but one: it changes no byte ("\n" stays "\n"), because the
// user's terminal does that when it gets them. nullopt where none can be had (no /dev/ptmx, their
// number is used up): a pipe will do.
std::optional<Pty> OpenPtyLike(int terminal);

// Gives the pty behind `master` the size of `terminal`. The command must be told (SIGWINCH): the
// pty is no process's controlling terminal.
void CopyWindowSize(int terminal, int master);

}  // namespace rankscope::run
