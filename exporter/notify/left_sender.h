// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sends what the wrappers of one user have left, with that user's rights: rules and wishes find the
// channels, the limits hold across his processes, and a file goes when its last delivery has gone.
// What he has no right to send (the password is root's) stays for the daemon. Knows no clock. One
// thread; SendOne blocks for up to 20 s.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "exporter/config/notify_config.h"
#include "exporter/notify/left_messages.h"
#include "exporter/notify/outbox.h"

namespace rankscope::exporter::notify {

class LeftSender {
 public:
  struct User {
    uint32_t uid = 0;
    std::string name;
  };
  struct Now {
    Timestamp t;
    int64_t wall_ns = 0;
  };

  LeftSender(std::shared_ptr<const NotifyConfig> config, LeftMessages messages, User user);

  // Takes up what is new in the folder.
  void Look(const Now& now);
  // Sends what is due now; false: nothing is.
  bool SendOne(const Now& now);
  std::optional<Timestamp> NextDue(Timestamp now) const { return outbox_.NextDue(now); }

  // Somebody has left more since the last look.
  bool HasNew() const;

  size_t pending() const { return outbox_.pending(); }
  size_t sent() const { return sent_; }
  size_t kept_back() const { return kept_back_; }          // deliveries that are not his to send
  const std::string& trouble() const { return trouble_; }  // the last failure

 private:
  void Recall(const Now& now);
  bool Take(LeftMessages::Left& left, const Now& now);
  void Done(const Outbox::Item& item);

  const std::shared_ptr<const NotifyConfig> config_;
  const LeftMessages messages_;
  const User user_;
  Outbox outbox_;
  std::map<std::string, LeftMessages::Left> files_;  // that are taken up
  std::set<std::string> steps_;                      // of Slurm, that were told
  bool recalled_ = false;
  size_t sent_ = 0, kept_back_ = 0;
  std::string trouble_;
};

}  // namespace rankscope::exporter::notify
