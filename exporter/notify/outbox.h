// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What waits to be sent, and when: whatever comes through one channel at about the same time goes
// as one message with a list; a channel that refuses waits longer and longer, and nobody else with
// it; limits hold messages back, so that they become a list, and lose none. Pure; one thread.
//
//   added --gather--> due --limits--> Next --> Sent
//                      ^                 |---> Failed: due again after 5 s, 10 s ... 15 min
//                      '-----------------'         given up after a day, or where it is refused
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/config/notify_config.h"
#include "exporter/notify/news.h"

namespace rankscope::exporter::notify {

class Outbox {
 public:
  static constexpr size_t kLeastList = 3;    // jobs that are told as a list
  static constexpr size_t kMostList = 1000;  // of one message
  static constexpr Duration kFirstRetry = Seconds(5);
  static constexpr Duration kLongestRetry = Seconds(900);
  static constexpr Duration kGiveUp = Seconds(24 * 3600);
  // Of an array the first that fails is told at once; the others as lists.
  static constexpr Duration kArrayPause = Seconds(600);

  struct Item {
    std::string file;  // of the spool
    std::shared_ptr<const Notification> notification;
    proto::Delivery delivery;
    Timestamp added;
  };
  struct Message {
    const NotifyChannel* channel = nullptr;
    std::string address;  // of the delivery
    std::vector<Item> items;
  };

  explicit Outbox(std::shared_ptr<const NotifyConfig> config) : config_(std::move(config)) {}

  // Forgets what waits, which is to be added again; what was sent still limits.
  void SetConfig(std::shared_ptr<const NotifyConfig> config);

  // False: there is no such channel any more.
  bool Add(Item item, Timestamp now);

  // What is to be sent now; it waits until Sent, Failed or GiveUp is called with it.
  std::optional<Message> Next(Timestamp now);
  // When Next is worth a call; nullopt: something has to be added first.
  std::optional<Timestamp> NextDue(Timestamp now) const;

  void Sent(const Message& message, Timestamp now);
  // Something was sent for this user earlier, by another process.
  void Recall(const std::string& channel, int64_t uid, Timestamp at);
  // Returns those that are given up, for they have waited too long.
  std::vector<Item> Failed(const Message& message, Timestamp now);

  size_t pending() const;  // deliveries
  size_t pending(ChannelKind kind) const;

 private:
  struct Lane {  // of one channel and address
    const NotifyChannel* channel = nullptr;
    std::deque<Item> items;
    int failures = 0;
    Timestamp retry;  // not before
  };
  using Key = std::pair<std::string, std::string>;

  Timestamp DueOf(const Lane& lane, const Item& item, Timestamp now) const;
  Timestamp AllowedByChannel(const NotifyChannel& channel, Timestamp now) const;
  Timestamp AllowedByUser(const NotifyChannel& channel, const Notification& n, Timestamp now) const;
  Timestamp AllowedByArray(const Lane& lane, const Notification& n) const;
  void Trim(Timestamp now);

  std::shared_ptr<const NotifyConfig> config_;
  std::map<Key, Lane> lanes_;
  std::map<std::string, std::deque<Timestamp>> sent_;                       // by channel
  std::map<std::pair<std::string, int64_t>, std::deque<Timestamp>> users_;  // and uid
  std::map<std::pair<std::string, std::string>, Timestamp> arrays_;         // and array
};

}  // namespace rankscope::exporter::notify
