// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

std::string TakeVariable(const char* name) {
  const char* const value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

// 0: no number.
int64_t NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

ServiceManager::ServiceManager() : socket_(TakeVariable("NOTIFY_SOCKET")) {
  const int64_t period_us = NumberOf(TakeVariable("WATCHDOG_USEC"));
  const std::string whose = TakeVariable("WATCHDOG_PID");
  if (period_us > 0 && (whose.empty() || NumberOf(whose) == getpid())) {
    watchdog_ = Duration{period_us * 1000};
  }
}

void ServiceManager::Tell(std::string_view state) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // no file: the kernel's abstract names
  const OwnedFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // A full queue is the manager's: the next ping comes before its patience ends.
  (void)sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), size);
}

void ServiceManager::KeepAlive(EventLoop& loop) const {
  if (!watchdog_ || socket_.empty()) return;
  loop.Every(Duration{watchdog_->ns / 3}, [this] { Tell("WATCHDOG=1"); });
}

}  // namespace rankscope::exporter
