// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/rules.h"

#include <algorithm>

namespace rankscope::exporter::notify {
namespace {

using Words = std::vector<std::string>;

constexpr size_t kMostWish = 8;  // channels and addresses of one job
constexpr size_t kMostWishBytes = 1024;
constexpr std::string_view kMailWord = "mail:";  // may stand before an address

bool Has(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool Allows(const Words& words, std::initializer_list<std::string_view> values) {
  return words.empty() || std::any_of(values.begin(), values.end(), [&](std::string_view value) {
           return !value.empty() && Has(words, value);
         });
}

// Nobody who has ended his own job wants to hear of it, unless he says so.
bool Wants(const Words& on, const Notification& notification, bool own) {
  const std::string_view occasion = OccasionOf(notification.status());
  if (!on.empty()) return Has(on, occasion);
  if (own) return false;
  return std::any_of(std::begin(kOccasions), std::end(kOccasions),
                     [&](const OccasionRow& row) { return row.name == occasion && row.unasked; });
}

bool Matches(const NotifyRule& rule, const Notification& notification,
             const Addressees& addressees) {
  return Allows(rule.domains, {notification.domain()}) &&
         Allows(rule.severities, {notification.severity()}) &&
         Allows(rule.families, {notification.code(), notification.family()}) &&
         Allows(rule.users,
                {addressees.user_name,
                 notification.uid() < 0 ? std::string() : std::to_string(notification.uid())}) &&
         Allows(rule.partitions, {notification.partition()}) &&
         Wants(rule.on, notification, addressees.own);
}

void AddOnce(proto::Delivery delivery, std::vector<proto::Delivery>& to) {
  for (const proto::Delivery& known : to) {
    if (known.channel() == delivery.channel() && known.address() == delivery.address()) return;
  }
  to.push_back(std::move(delivery));
}

proto::Delivery To(const std::string& channel, const std::string& address = {}) {
  proto::Delivery delivery;
  delivery.set_channel(channel);
  delivery.set_address(address);
  return delivery;
}

const NotifyChannel* MailOfJobs(const NotifyConfig& config) {
  for (const NotifyChannel& channel : config.channels) {
    if (channel.kind == ChannelKind::kEmail && channel.jobs) return &channel;
  }
  return nullptr;
}

std::string RefuseAddress(const NotifyConfig& config, const std::string& word) {
  if (!IsMailAddress(word)) return "is no mail address";
  if (MailOfJobs(config) == nullptr) return "no channel of mail is open to jobs";
  if (!Has(config.mail_domains, word.substr(word.find('@') + 1)))
    return "its domain is none of mail_domains";
  return {};
}

}  // namespace

std::string_view OccasionOf(Notification::Status status) {
  switch (status) {
    case Notification::HUNG:
      return "hung";
    case Notification::DIVERGED:
      return "diverged";
    case Notification::FAILED:
      return "failed";
    case Notification::STOPPED:
      return "stopped";
    case Notification::RECOVERED:
      return "recovered";
    case Notification::COMPLETED:
      return "completed";
    default:
      return "unknown";
  }
}

JobWish ReadWish(const NotifyConfig& config, std::string_view text) {
  JobWish wish;
  text = text.substr(0, kMostWishBytes);
  while (!text.empty() && wish.deliveries.size() < kMostWish && wish.refused.size() < kMostWish) {
    const size_t comma = std::min(text.find_first_of(", "), text.size());
    std::string word(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (word.starts_with(kMailWord) && word.find('@') != std::string::npos)
      word.erase(0, kMailWord.size());
    if (word.empty()) continue;
    if (word == "completed") {
      wish.completed = true;
    } else if (word.find('@') != std::string::npos) {
      const std::string why = RefuseAddress(config, word);
      if (why.empty()) {
        AddOnce(To(MailOfJobs(config)->name, word), wish.deliveries);
      } else {
        wish.refused.push_back(why);
      }
    } else if (const NotifyChannel* channel = config.Find(word);
               channel != nullptr && channel->jobs) {
      AddOnce(To(channel->name), wish.deliveries);
    } else {
      wish.refused.push_back("no channel of that name is open to jobs");
    }
  }
  return wish;
}

std::vector<proto::Delivery> DeliveriesOf(const NotifyConfig& config,
                                          const Notification& notification,
                                          const Addressees& addressees) {
  std::vector<proto::Delivery> deliveries;
  if (addressees.told != nullptr && !addressees.told->deliveries().empty()) {
    for (const proto::Delivery& delivery : addressees.told->deliveries()) {
      if (config.Find(delivery.channel()) != nullptr) AddOnce(delivery, deliveries);
    }
  }
  for (const NotifyRule& rule : config.rules) {
    if (!Matches(rule, notification, addressees)) continue;
    for (const std::string& channel : rule.channels) AddOnce(To(channel), deliveries);
  }
  const JobWish wish = ReadWish(config, addressees.wish);
  const Words on = wish.completed
                       ? Words{"hung", "diverged", "failed", "stopped", "recovered", "completed"}
                       : Words{};
  if (Wants(on, notification, addressees.own)) {
    for (const proto::Delivery& delivery : wish.deliveries) AddOnce(delivery, deliveries);
  }
  // A channel without addresses of its own is for jobs that name one.
  std::erase_if(deliveries, [&](const proto::Delivery& delivery) {
    const NotifyChannel* channel = config.Find(delivery.channel());
    return channel->kind == ChannelKind::kEmail && channel->to.empty() &&
           delivery.address().empty();
  });
  return deliveries;
}

}  // namespace rankscope::exporter::notify
