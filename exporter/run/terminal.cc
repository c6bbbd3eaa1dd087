// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cstdlib>

namespace rankscope::run {

std::optional<Pty> OpenPtyLike(int terminal) {
  Pty pty;
  pty.master = OwnedFd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.master || unlockpt(pty.master.get()) != 0) return std::nullopt;
  // By the master and not by its name, which another mount of /dev/pts may give to another pty
  // (Linux 4.13, commit 54ebbfb16034).
  pty.slave = OwnedFd(ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return std::nullopt;
  termios modes{};
  if (tcgetattr(terminal, &modes) != 0) return std::nullopt;
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  // Nothing is ever typed here; an echo of nothing need not be guarded against either.
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (tcsetattr(pty.slave.get(), TCSANOW, &modes) != 0) return std::nullopt;
  CopyWindowSize(terminal, pty.master.get());
  return pty;
}

void CopyWindowSize(int terminal, int master) {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) == 0) ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace rankscope::run
