// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A loop that runs until what waits for the disk has been written, for tests of what is written
// beside the loop. One thread.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

// Runs the loop until `done`, which is asked each millisecond.
inline void RunUntil(EventLoop& loop, const std::function<bool()>& done) {
  if (done()) return;
  const EventLoop::TimerId look = loop.Every(Milliseconds(1), [&] {
    if (done()) loop.Stop();
  });
  const EventLoop::TimerId limit = loop.After(Seconds(60), [&] {
    ADD_FAILURE() << "waited 60 s";
    loop.Stop();
  });
  loop.Run();
  loop.Cancel(look);
  loop.Cancel(limit);
}

}  // namespace rankscope::exporter
