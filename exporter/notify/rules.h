// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Through which channels something goes: by the rules of the configuration, by what the job itself
// asks for, and always where its beginning has gone. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporter/config/notify_config.h"
#include "exporter/notify/news.h"

namespace rankscope::exporter::notify {

// What a job asks for, in one text: channels and mail addresses, separated by commas. An address is
// taken within the configured domains, and goes through the first channel of mail that jobs may
// choose. Never a URL.
struct JobWish {
  std::vector<proto::Delivery> deliveries;
  std::vector<std::string> refused;  // why each other word is none
  bool completed = false;            // the word "completed": success is told as well
};
JobWish ReadWish(const NotifyConfig& config, std::string_view text);

struct Addressees {
  std::string user_name = {};  // of the uid, as the node knows it; empty: it does not
  bool own = false;            // as in News
  const proto::ToldJob* told = nullptr;
  std::string wish = {};
};

std::vector<proto::Delivery> DeliveriesOf(const NotifyConfig& config,
                                          const Notification& notification,
                                          const Addressees& addressees);

// The name of a status in `on`: "failed".
std::string_view OccasionOf(Notification::Status status);

}  // namespace rankscope::exporter::notify
