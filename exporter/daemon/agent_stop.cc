// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How the agent ends, within less than a second, whatever hangs.
#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "exporter/daemon/agent.h"
#include "exporter/loop/start_thread.h"

namespace rankscope::exporter {
namespace {

// At the end, for what the disk has not taken yet: what is left is judged again by the next start.
constexpr Duration kDiskPatience = Milliseconds(150);
// And for clients.
constexpr Duration kListenerPatience = Milliseconds(250);

}  // namespace

bool Agent::StopListener() {
  if (!listener_) return true;
  auto ended = std::make_shared<std::promise<void>>();
  std::future<void> end = ended->get_future();
  auto stop = StartThread([ended, listener = std::shared_ptr(std::move(listener_))]() mutable {
    listener.reset();
    ended->set_value();
  });
  if (!stop) return true;  // it was stopped at once, where the thread would have been
  if (end.wait_for(std::chrono::nanoseconds(kListenerPatience.ns)) == std::future_status::ready) {
    stop->join();
    return true;
  }
  stop->detach();
  return false;
}

bool Agent::Stop() {
  const bool users_ended = users_->Stop();
  if (tick_timer_ == 0) return StopListener() && users_ended;
  loop_.Cancel(std::exchange(tick_timer_, 0));
  loop_.Cancel(std::exchange(judge_timer_, 0));
  loop_.BeginStop();
  sources_.Stop();
  recordings_.Flush();
  recording_disk_.Stop(kDiskPatience);
  documents_disk_.Stop(kDiskPatience);
  const bool sender_ended = notifier_ == nullptr || notifier_->Stop();
  return StopListener() && sender_ended && users_ended;
}

}  // namespace rankscope::exporter
