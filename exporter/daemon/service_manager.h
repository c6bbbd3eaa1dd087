// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What systemd hears of a service of Type=notify: a datagram for each state (sd_notify(3)), without
// libsystemd. Where nobody asked to be told, everything here does nothing. Main thread only, and
// constructed before there are others: it changes the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "detectors/model/time.h"
#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

class ServiceManager {
 public:
  // Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: programs that the
  // daemon starts have nothing to say there.
  ServiceManager();

  // "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=..."; several, one a line. A manager that does
  // not take it is no reason to stop.
  void Tell(std::string_view state) const;

  // Pings the watchdog from the loop, three times in the time that it allows: a loop that hangs
  // pings no more, and is restarted.
  void KeepAlive(EventLoop& loop) const;

 private:
  std::string socket_;                // empty: nobody listens
  std::optional<Duration> watchdog_;  // of this process
};

}  // namespace rankscope::exporter
