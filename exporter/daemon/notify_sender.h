// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The thread that sends what waits in the spool. A server that hangs keeps this thread waiting, and
// nothing else; its reads and writes give way to everybody's. Made and ended on the loop thread;
// Wake and counts from any.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "detectors/model/time.h"
#include "exporter/config/notify_config.h"

namespace rankscope::exporter {

struct NotifyCounts {
  static constexpr size_t kKinds = std::size(kChannelKinds);
  std::array<int64_t, kKinds> sent{}, failed{}, pending{};  // by ChannelKind
  int64_t given_up = 0;                                     // after a day
  int64_t refused = 0;                                      // for good
  int64_t damaged = 0;                                      // files of the spool
  std::string trouble;  // the last failure of a channel; empty: the last attempt succeeded
};

class NotifySender {
 public:
  NotifySender(std::shared_ptr<const NotifyConfig> config, std::string folder);
  // Waits a moment for a message that is being sent; a thread that does not come back is left
  // behind, and its message is sent again by the next start.
  ~NotifySender();
  NotifySender(const NotifySender&) = delete;
  NotifySender& operator=(const NotifySender&) = delete;

  // Something was put into the spool.
  void Wake();
  // From the next message on.
  void SetConfig(std::shared_ptr<const NotifyConfig> config);
  NotifyCounts counts() const;
  // False: the thread was left behind. Nothing is sent any more.
  bool Stop(Duration patience);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  bool stopped_ = false;
};

}  // namespace rankscope::exporter
