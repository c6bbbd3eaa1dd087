// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sends one message through one channel. Secrets are read from their files for each message, so
// that they can be renewed at any time, and stand in no error. Blocks for up to 20 s: a thread of
// its own. Any number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exporter/config/notify_config.h"
#include "exporter/notify/report.h"

namespace rankscope::exporter::notify {

struct SendOutcome {
  enum class End : uint8_t {
    kTaken,
    kRefused,  // it will never be taken
    kFailed,   // another time it may be
  };
  End end = End::kFailed;
  std::string error;  // with the channel's name; empty: kTaken
};

// Why the calling process cannot send through the channel: a file that it names is another user's.
// Empty: it can.
std::string WhyNotOurs(const NotifyChannel& channel);

// `address`: in place of the channel's own, for mail. `batch` is not empty. `files_of`: the user
// whose process this is, whose archive is attached where the channel may quote his job; nothing
// where a daemon sends, which opens no file that a user has named.
SendOutcome Send(const NotifyConfig& config, const NotifyChannel& channel,
                 const std::string& address, const Batch& batch,
                 std::optional<uint32_t> files_of = std::nullopt);

}  // namespace rankscope::exporter::notify
