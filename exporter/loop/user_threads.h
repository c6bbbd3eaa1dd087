// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Threads that touch files as a user of the node, so that the kernel decides what he may read. Only
// the ids for files are his (setfsuid(2)): with his other ids he could signal or trace the daemon.
// They hold no capability in effect. One thread of the process alone keeps the right to take on
// another's ids, and makes these threads; the daemon gives it up.
#pragma once

#include <functional>
#include <thread>

#include "exporter/loop/user_identity.h"

namespace rankscope::exporter {

// Makes the thread that keeps the right; called before the daemon gives its own up, and after its
// signals are blocked. Without it the first StartAs does that, with what rights are left then. What
// it makes is one per process, as credentials are: they cannot be given back.
void PrepareUserThreads();

// A thread with this identity. Not joinable where that cannot be had: the process is neither root
// nor this user, has no CAP_SETUID and CAP_SETGID, or there are no more threads. Any thread.
std::thread StartAs(const UserIdentity& who, std::function<void()> body);

// While it lives, the calling thread may follow the links below /proc/PID that lead to what a
// process has open, or to its root and working directory, though the process lives in a container.
// For the opening of such a link with O_PATH alone: never while a path is walked that a user names.
class ProcessAccess {
 public:
  ProcessAccess();
  ~ProcessAccess();
  ProcessAccess(const ProcessAccess&) = delete;
  ProcessAccess& operator=(const ProcessAccess&) = delete;

 private:
  bool raised_ = false;
};

}  // namespace rankscope::exporter
