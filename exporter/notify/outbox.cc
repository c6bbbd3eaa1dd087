// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/outbox.h"

#include <algorithm>
#include <set>

namespace rankscope::exporter::notify {
namespace {

constexpr Duration kMinute = Seconds(60);
constexpr Duration kHour = Seconds(3600);
constexpr size_t kMostRemembered = 4096;  // users and arrays; beyond they are forgotten

// The first time at which fewer than `most` of `times` lie within `span`.
Timestamp Allowed(const std::deque<Timestamp>& times, int64_t most, Duration span, Timestamp now) {
  if (times.size() < static_cast<size_t>(most)) return now;
  return std::max(now, times[times.size() - static_cast<size_t>(most)] + span);
}

template <class Times>
void Remember(Times& times, int64_t most, Timestamp now) {
  times.push_back(now);
  while (times.size() > static_cast<size_t>(most)) times.pop_front();
}

}  // namespace

void Outbox::SetConfig(std::shared_ptr<const NotifyConfig> config) {
  lanes_.clear();
  config_ = std::move(config);
}

bool Outbox::Add(Item item, Timestamp now) {
  const NotifyChannel* channel = config_->Find(item.delivery.channel());
  if (channel == nullptr) return false;
  Lane& lane = lanes_[{item.delivery.channel(), item.delivery.address()}];
  lane.channel = channel;
  item.added = now;
  lane.items.push_back(std::move(item));
  return true;
}

Timestamp Outbox::AllowedByChannel(const NotifyChannel& channel, Timestamp now) const {
  const auto found = sent_.find(channel.name);
  return found == sent_.end() ? now : Allowed(found->second, channel.per_minute, kMinute, now);
}

Timestamp Outbox::AllowedByUser(const NotifyChannel& channel, const Notification& n,
                                Timestamp now) const {
  const auto found = users_.find({channel.name, n.uid()});
  return found == users_.end() ? now
                               : Allowed(found->second, config_->per_user_per_hour, kHour, now);
}

// What belongs to a message that was sent follows it without a pause.
Timestamp Outbox::AllowedByArray(const Lane& lane, const Notification& n) const {
  if (n.array_job_id().empty() || n.id() != n.thread()) return {};
  const auto found = arrays_.find({lane.channel->name, n.array_job_id()});
  return found == arrays_.end() ? Timestamp{} : found->second + kArrayPause;
}

Timestamp Outbox::DueOf(const Lane& lane, const Item& item, Timestamp now) const {
  Timestamp due = std::max(item.added + config_->gather, lane.retry);
  // Alertmanager groups and limits by itself, and has to know when an alert is over.
  if (lane.channel->kind == ChannelKind::kAlertmanager) return due;
  due = std::max(due, AllowedByChannel(*lane.channel, due));
  due = std::max(due, AllowedByArray(lane, *item.notification));
  const Timestamp by_user = AllowedByUser(*lane.channel, *item.notification, now);
  return by_user > now ? std::max(due, by_user) : due;
}

std::optional<Outbox::Message> Outbox::Next(Timestamp now) {
  Trim(now);
  const Lane* first = nullptr;
  Timestamp earliest;
  for (const auto& [key, lane] : lanes_) {
    for (const Item& item : lane.items) {
      const Timestamp due = DueOf(lane, item, now);
      if (due > now || (first != nullptr && due >= earliest)) continue;
      first = &lane;
      earliest = due;
    }
  }
  if (first == nullptr) return std::nullopt;
  // Who waits only for others of his incident goes along with those that were there before.
  Message message;
  message.channel = first->channel;
  for (const Item& item : first->items) {
    if (message.items.size() == kMostList) break;
    const bool gathers = now < item.added + config_->gather;
    if (gathers || DueOf(*first, item, now) <= now) message.items.push_back(item);
  }
  message.address = message.items.front().delivery.address();
  std::set<std::string> arrays;
  for (const Item& item : message.items)
    arrays.insert(item.notification->array_job_id().empty() ? item.file
                                                            : item.notification->array_job_id());
  const bool list = message.items.size() >= kLeastList || arrays.size() < message.items.size();
  const bool groups = message.channel->kind == ChannelKind::kAlertmanager ||
                      message.channel->kind == ChannelKind::kWebhook;
  if (!list && !groups) {
    const auto is_due = [&](const Item& item) { return DueOf(*first, item, now) <= now; };
    Item one = *std::find_if(message.items.begin(), message.items.end(), is_due);
    message.items.assign(1, std::move(one));
  }
  return message;
}

std::optional<Timestamp> Outbox::NextDue(Timestamp now) const {
  std::optional<Timestamp> next;
  for (const auto& [key, lane] : lanes_) {
    for (const Item& item : lane.items) {
      const Timestamp due = DueOf(lane, item, now);
      if (!next || due < *next) next = due;
    }
  }
  return next;
}

void Outbox::Sent(const Message& message, Timestamp now) {
  const auto found = lanes_.find({message.channel->name, message.address});
  if (found == lanes_.end()) return;
  Lane& lane = found->second;
  lane.failures = 0;
  lane.retry = {};
  Remember(sent_[message.channel->name], message.channel->per_minute, now);
  std::set<int64_t> uids;
  for (const Item& item : message.items) {
    uids.insert(item.notification->uid());
    if (!item.notification->array_job_id().empty())
      arrays_[{message.channel->name, item.notification->array_job_id()}] = now;
    const auto at = std::find_if(lane.items.begin(), lane.items.end(),
                                 [&item](const Item& other) { return other.file == item.file; });
    if (at != lane.items.end()) lane.items.erase(at);
  }
  for (const int64_t uid : uids)
    Remember(users_[{message.channel->name, uid}], config_->per_user_per_hour, now);
  if (lane.items.empty()) lanes_.erase(found);
}

void Outbox::Recall(const std::string& channel, int64_t uid, Timestamp at) {
  const NotifyChannel* const known = config_->Find(channel);
  if (known == nullptr) return;
  Remember(sent_[channel], known->per_minute, at);
  Remember(users_[{channel, uid}], config_->per_user_per_hour, at);
}

std::vector<Outbox::Item> Outbox::Failed(const Message& message, Timestamp now) {
  std::vector<Item> given_up;
  const auto found = lanes_.find({message.channel->name, message.address});
  if (found == lanes_.end()) return given_up;
  Lane& lane = found->second;
  const int shift = std::min(lane.failures++, 20);
  lane.retry = now + Duration{std::min(kFirstRetry.ns << shift, kLongestRetry.ns)};
  for (auto at = lane.items.begin(); at != lane.items.end();) {
    if (at->added + kGiveUp > now) {
      ++at;
      continue;
    }
    given_up.push_back(std::move(*at));
    at = lane.items.erase(at);
  }
  if (lane.items.empty()) lanes_.erase(found);
  return given_up;
}

// Only what still limits is remembered.
void Outbox::Trim(Timestamp now) {
  std::erase_if(arrays_, [now](const auto& entry) { return entry.second + kArrayPause < now; });
  std::erase_if(users_, [now](const auto& entry) { return entry.second.back() + kHour < now; });
  if (arrays_.size() > kMostRemembered) arrays_.clear();
  if (users_.size() > kMostRemembered) users_.clear();
}

size_t Outbox::pending() const {
  size_t count = 0;
  for (const auto& [key, lane] : lanes_) count += lane.items.size();
  return count;
}

size_t Outbox::pending(ChannelKind kind) const {
  size_t count = 0;
  for (const auto& [key, lane] : lanes_)
    count += lane.channel->kind == kind ? lane.items.size() : 0;
  return count;
}

}  // namespace rankscope::exporter::notify
