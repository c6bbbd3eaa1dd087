// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A thread where the kernel has room for one (pids.max, memory): std::thread throws where it has
// not, and a node that is full must not end the daemon. Any thread.
#pragma once

#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace rankscope::exporter {

inline std::optional<std::thread> StartThread(std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace rankscope::exporter
