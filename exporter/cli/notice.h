// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What `rankscope run` does for notifications where no daemon tells people of it: writes one file
// and leaves a process behind that sends it. The wrapper itself reads no configuration, loads no
// library and waits for no server.
//
//   run: judged -> message -> UID.HEX.msg -> `rankscope deliver`, detached -> exit
//                                  '--> where that is killed: the daemon, the epilog, the next run
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/engine/engine.h"
#include "detectors/model/observation.h"
#include "exporter/notify/left_messages.h"
#include "exporter/notify/log_tails.h"

namespace rankscope::cli {

exporter::notify::UserPlaces PlacesOf(char* const* environment);

class Notice {
 public:
  // `wish`: what --notify asks for; empty: what the environment does.
  Notice(std::string wish, char* const* environment);

  // Somebody may be told: there is a configuration, and this wrapper is to speak for its job.
  bool wanted() const { return !config_.empty(); }
  // What the user is told who asks for it in vain; empty: it is as he asks.
  const std::string& complaint() const { return complaint_; }

  void Hear(const LogLine& line) { tails_.Note(line); }

  using Message = proto::SpooledNotification;
  // The message about the end of the job; nothing: there is nothing to tell.
  std::optional<Message> MessageOf(const engine::Engine& engine, std::string_view job_id,
                                   const std::string& node, Timestamp now, int64_t wall_ns) const;
  // Writes it and leaves the sender behind. What could not be done, or nothing.
  std::string Leave(const Message& message, uint64_t random) const;

 private:
  exporter::notify::UserPlaces places_;
  std::string config_;
  std::string wish_;
  std::string step_;
  std::string complaint_;
  exporter::notify::LogTails tails_;
};

}  // namespace rankscope::cli
