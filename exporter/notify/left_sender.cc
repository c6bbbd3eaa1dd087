// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/left_sender.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "exporter/notify/channel.h"
#include "exporter/notify/rules.h"

namespace rankscope::exporter::notify {
namespace {

constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;

// The next word of a note; empty: there is none.
std::string_view TakeWord(std::string_view& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(std::min(space + 1, line.size()));
  return word;
}

}  // namespace

LeftSender::LeftSender(std::shared_ptr<const NotifyConfig> config, LeftMessages messages, User user)
    : config_(std::move(config)),
      messages_(std::move(messages)),
      user_(std::move(user)),
      outbox_(config_) {}

// "sent WALL_NS CHANNEL", "step WALL_NS STEP": of his other processes.
void LeftSender::Recall(const Now& now) {
  const std::string notes = messages_.ReadNotes(user_.uid);
  std::string_view rest = notes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string_view what = TakeWord(line);
    const std::string_view time = TakeWord(line);
    int64_t wall_ns = 0;
    std::from_chars(time.data(), time.data() + time.size(), wall_ns);
    const int64_t age_ns = now.wall_ns - wall_ns;
    if (age_ns < 0) continue;
    if (what == "sent" && age_ns < kHourNs)
      outbox_.Recall(std::string(line), user_.uid, now.t - Duration{age_ns});
    if (what == "step" && age_ns < LeftMessages::kMostAgeNs) steps_.emplace(line);
  }
}

void LeftSender::Look(const Now& now) {
  if (!std::exchange(recalled_, true)) Recall(now);
  size_t damaged = 0;
  for (LeftMessages::Left& left : messages_.Read(user_.uid, damaged)) {
    if (files_.contains(left.file)) continue;
    const std::string file = left.file;
    const bool old = left.message.spooled_ns() + LeftMessages::kMostAgeNs < now.wall_ns;
    if ((old || !Take(left, now)) && !messages_.Remove(file).ok()) continue;
  }
}

bool LeftSender::HasNew() const {
  size_t damaged = 0;
  const auto all = messages_.Read(user_.uid, damaged);
  return std::any_of(all.begin(), all.end(), [this](const LeftMessages::Left& left) {
    return !files_.contains(left.file);
  });
}

// False: nobody is to know of it.
bool LeftSender::Take(LeftMessages::Left& left, const Now& now) {
  proto::SpooledNotification& message = left.message;
  Notification& notification = *message.mutable_notification();
  notification.set_uid(user_.uid);
  notification.set_user(user_.name);
  if (!message.addressed()) {
    const bool told = !message.step().empty() && !steps_.insert(message.step()).second;
    if (told) return false;
    message.clear_deliveries();
    for (const proto::Delivery& delivery :
         DeliveriesOf(*config_, notification,
                      {.user_name = user_.name, .own = message.own(), .wish = message.wish()}))
      *message.add_deliveries() = delivery;
    message.set_addressed(true);
    if (message.deliveries().empty()) return false;
    if (!message.step().empty())
      messages_.AddNote(user_.uid, "step " + std::to_string(now.wall_ns) + ' ' + message.step());
    // On the disk from here; where it takes nothing, the other file is still there.
    if (const Status kept = messages_.Replace(left); !kept.ok()) trouble_ = kept.error();
  }
  const auto shared = std::make_shared<const Notification>(notification);
  bool any = false;
  for (const proto::Delivery& delivery : message.deliveries()) {
    const NotifyChannel* channel = config_->Find(delivery.channel());
    if (channel == nullptr) continue;
    any = true;
    if (const std::string why = WhyNotOurs(*channel); !why.empty()) {
      ++kept_back_;
      trouble_ = why;
    } else {
      outbox_.Add({left.file, shared, delivery, {}}, now.t);
    }
  }
  if (any) files_.emplace(left.file, std::move(left));
  return any;
}

bool LeftSender::SendOne(const Now& now) {
  const std::optional<Outbox::Message> message = outbox_.Next(now.t);
  if (!message) return false;
  Batch batch;
  for (const Outbox::Item& item : message->items) batch.push_back(item.notification.get());
  const SendOutcome outcome = Send(*config_, *message->channel, message->address, batch, user_.uid);
  std::vector<Outbox::Item> done = message->items;
  trouble_ = outcome.error;
  if (outcome.end == SendOutcome::End::kFailed) {
    done = outbox_.Failed(*message, now.t);
  } else {
    outbox_.Sent(*message, now.t);
  }
  if (outcome.end == SendOutcome::End::kTaken) {
    ++sent_;
    messages_.AddNote(user_.uid,
                      "sent " + std::to_string(now.wall_ns) + ' ' + message->channel->name);
  }
  for (const Outbox::Item& item : done) Done(item);
  return true;
}

void LeftSender::Done(const Outbox::Item& item) {
  const auto found = files_.find(item.file);
  if (found == files_.end()) return;
  auto& rest = *found->second.message.mutable_deliveries();
  for (int i = rest.size() - 1; i >= 0; --i) {
    const proto::Delivery& delivery = rest.Get(i);
    if (delivery.channel() == item.delivery.channel() &&
        delivery.address() == item.delivery.address())
      rest.DeleteSubrange(i, 1);
  }
  // A disk that takes neither lets it be sent twice.
  const Status kept = rest.empty() ? messages_.Remove(item.file) : messages_.Replace(found->second);
  if (!kept.ok()) trouble_ = kept.error();
}

}  // namespace rankscope::exporter::notify
