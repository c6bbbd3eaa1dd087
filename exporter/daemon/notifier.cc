// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/notifier.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "exporter/notify/describe.h"
#include "exporter/notify/left_messages.h"
#include "exporter/notify/rules.h"

namespace rankscope::exporter {
namespace {

static_assert(std::equal(std::begin(kChannelKinds), std::end(kChannelKinds),
                         metrics::kNotifyKinds.begin(), metrics::kNotifyKinds.end()));

constexpr size_t kMostRefused = 256;  // that wait for a disk
constexpr int64_t kRetryNs = int64_t{5} * 1'000'000'000;
constexpr Duration kPatience = Milliseconds(150);
// A wrapper's own sender comes first.
constexpr int64_t kOthersFirstNs = int64_t{20} * 1'000'000'000;
constexpr int64_t kTakeOverNs = int64_t{30} * 1'000'000'000;

// For a name that rules may ask for.
constexpr Duration kNamePatience = Seconds(2);
constexpr size_t kMostWishes = 4096;

}  // namespace

struct Notifier::Desk {
  std::shared_ptr<const NotifyConfig> config;
  NotifySpool spool;
  std::shared_ptr<UserDirectory> users;
  std::map<std::string, proto::ToldJob> told;  // that somebody was told of, by job

  // The error of the disk; `full`: there is no room. Nothing is written where nobody is to know.
  std::string Put(const News& news, int64_t wall_ns, bool& full);
  // Of what wrappers have left, how many messages were taken over.
  size_t TakeOver(const notify::LeftMessages& left, int64_t wall_ns);
  bool TakeOne(const notify::LeftMessages::Left& one, int64_t wall_ns);
};

std::string Notifier::Desk::Put(const News& news, int64_t wall_ns, bool& full) {
  proto::SpooledNotification message;
  notify::Notification& notification = *message.mutable_notification();
  notification = news.notification;
  // What a user says of a job follows nothing that was told of it.
  const auto before = news.claimed ? told.end() : told.find(notification.job_id());
  const proto::ToldJob* known = before == told.end() ? nullptr : &before->second;
  if (known != nullptr) notify::Follow(*known, notification);
  const std::string name = users->Wait(notification.uid(), kNamePatience);
  if (!name.empty()) notification.set_user(name);
  std::vector<proto::Delivery> deliveries =
      notify::DeliveriesOf(*config, notification,
                           {.user_name = name, .own = news.own, .told = known, .wish = news.wish});
  std::erase_if(deliveries, [&](const proto::Delivery& delivery) {
    const auto same = [&](const proto::Delivery& other) {
      return other.channel() == delivery.channel() && other.address() == delivery.address();
    };
    return news.among && std::none_of(news.among->begin(), news.among->end(), same);
  });
  if (deliveries.empty()) return {};
  for (const proto::Delivery& delivery : deliveries) *message.add_deliveries() = delivery;
  message.set_spooled_ns(wall_ns);
  proto::ToldJob after = notify::ToldAfter(notification, known);
  if (news.claimed) after.set_job_id("left " + notification.id());
  *after.mutable_deliveries() = message.deliveries();
  const auto put = spool.Put(message, after);
  if (!put) return put.error();
  full = !*put;
  if (full) return {};
  if (known == nullptr && told.size() >= NotifySpool::kMostTold) told.erase(told.begin());
  const std::string key = after.job_id();
  told[key] = std::move(after);
  return {};
}

size_t Notifier::Desk::TakeOver(const notify::LeftMessages& left, int64_t wall_ns) {
  size_t taken = 0, damaged = 0;
  struct Lock {
    bool none = false;  // nobody has ever sent for him
    OwnedFd fd;
  };
  std::map<uint32_t, Lock> locks;
  for (const notify::LeftMessages::Left& one : left.Read(std::nullopt, damaged)) {
    const int64_t age_ns = wall_ns - one.message.spooled_ns();
    if (age_ns >= 0 && age_ns < kOthersFirstNs) continue;
    const auto [lock, first] = locks.try_emplace(one.uid);
    if (first) lock->second.fd = left.LockOf(one.uid, lock->second.none);
    if (!lock->second.none && !lock->second.fd) continue;  // his own sender is at it
    const bool old = age_ns > notify::LeftMessages::kMostAgeNs;
    const bool done = old || TakeOne(one, wall_ns);
    if (done && left.Remove(one.file).ok() && !old) ++taken;
  }
  return taken;
}

// False: the disk refuses, and it stays where it is.
bool Notifier::Desk::TakeOne(const notify::LeftMessages::Left& one, int64_t wall_ns) {
  const auto claim = notify::TakeClaim(one.message.notification(), one.uid);
  if (!claim) return true;
  const auto known = told.find(claim->job_id());
  if (known != told.end() && known->second.final()) return true;  // the daemon tells of it
  News news{*claim, one.message.own(), one.message.wish(), {}, true};
  if (one.message.addressed())
    news.among.emplace(one.message.deliveries().begin(), one.message.deliveries().end());
  bool full = false;
  return Put(news, wall_ns, full).empty() && !full;
}

Notifier::Notifier(EventLoop& loop, Logger& log, NotifyConfig config, Place place,
                   std::shared_ptr<UserDirectory> users)
    : loop_(loop),
      log_(log),
      place_(std::move(place)),
      desk_(std::make_shared<Desk>(Desk{std::make_shared<const NotifyConfig>(std::move(config)),
                                        NotifySpool(place_.folder),
                                        std::move(users),
                                        {}})),
      disk_(loop),
      arrays_(desk_->config->array_wait),
      self_(std::make_shared<Notifier*>(this)) {
  for (const NotifyChannel& channel : desk_->config->channels) quotes_log_ |= channel.log;
}

Notifier::~Notifier() {
  *self_ = nullptr;
}

Status Notifier::Open(int64_t wall_ns, Duration keep) {
  keep_ns_ = keep.ns;
  const Status opened = desk_->spool.Open();
  if (opened.ok()) {
    for (proto::ToldJob& told : desk_->spool.Told(wall_ns, keep_ns_)) {
      const std::string job_id = told.job_id();
      seen_[job_id] = {told, wall_ns};
      desk_->told[job_id] = std::move(told);
    }
  }
  sender_ = std::make_unique<NotifySender>(desk_->config, place_.folder);
  return opened;
}

void Notifier::SetConfig(NotifyConfig config) {
  const auto shared = std::make_shared<const NotifyConfig>(std::move(config));
  quotes_log_ = std::any_of(shared->channels.begin(), shared->channels.end(),
                            [](const NotifyChannel& channel) { return channel.log; });
  arrays_.SetMost(shared->array_wait);
  const auto take = [desk = desk_, shared]() -> std::function<void()> {
    desk->config = shared;
    return {};
  };
  if (!disk_.Submit(take)) log_.Warn("notify.file is read when the disk is back", {});
  if (sender_ != nullptr) sender_->SetConfig(shared);
}

void Notifier::Heard(const LogLine& line) {
  if (quotes_log_) tails_.Note(line);
}

void Notifier::Wished(const std::string& job_id, int64_t uid, std::string wish) {
  if (wishes_.size() < kMostWishes || wishes_.contains(job_id))
    wishes_[job_id] = {uid, std::move(wish)};
}

void Notifier::WishedInComment(const std::string& job_id, std::string wish) {
  if (comments_.size() < kMostWishes || comments_.contains(job_id))
    comments_[job_id] = std::move(wish);
}

void Notifier::Sized(const std::string& job_id, int32_t tasks) {
  if (sizes_.size() < kMostWishes || sizes_.contains(job_id)) sizes_[job_id] = tasks;
}

notify::ArrayRoom::Task Notifier::TaskOf(const JobStatus& job) const {
  const auto size = sizes_.find(job.job_id);
  return {job.facts.array_job_id, job.uid, job.job_id, size == sizes_.end() ? 0 : size->second};
}

void Notifier::Judged(const JobStatus& job, const std::optional<JobSummary>& summary,
                      int64_t wall_ns) {
  if (!job.watched) return;
  if (job.verdict.state() == rankscope::proto::LIVE) arrays_.Runs(TaskOf(job), wall_ns);
  const auto seen = seen_.find(job.job_id);
  const proto::ToldJob* told = seen == seen_.end() ? nullptr : &seen->second.told;
  const std::optional<notify::News> news = notify::NewsOf(job.verdict, told, job.uid);
  if (!news) return;
  News out;
  out.notification = notify::Describe(job, {*news, summary, tails_.Of(job), place_.node, wall_ns});
  out.own = news->own;
  if (const auto wish = wishes_.find(job.job_id);
      wish != wishes_.end() && wish->second.uid == job.uid) {
    out.wish = wish->second.text;
  } else if (const auto comment = comments_.find(job.job_id); comment != comments_.end()) {
    out.wish = comment->second;
  }
  seen_[job.job_id] = {notify::ToldAfter(out.notification, told), wall_ns};
  if (job.verdict.state() == rankscope::proto::FINAL) {
    // Whoever has heard that it hangs hears of its end at once.
    if (told == nullptr || told->final()) out.task = TaskOf(job);
    held_[job.job_id] = std::move(out);
  } else {
    Spool(std::move(out));
  }
}

void Notifier::Kept(const std::string& job_id) {
  const auto found = held_.find(job_id);
  if (found == held_.end()) return;
  News news = std::move(found->second);
  held_.erase(found);
  notify::Notification& told = news.notification;
  if (const auto waits = waiting_.find(job_id); waits != waiting_.end()) {
    // Nobody has heard of the end that this corrects.
    told.set_corrects(false);
    waits->second = std::move(news);
    return;
  }
  const bool completed = told.status() == notify::Notification::COMPLETED;
  const bool waits = !told.corrects() && arrays_.Ends(news.task, completed, told.at_ns());
  if (!waits) return Spool(std::move(news));
  waiting_[job_id] = std::move(news);
  SpoolArrays(arrays_.TakeDue(told.at_ns()));
}

void Notifier::SpoolArrays(const std::vector<notify::ArrayRoom::Told>& arrays) {
  for (const notify::ArrayRoom::Told& array : arrays) {
    for (const std::string& job_id : array.job_ids) {
      auto found = waiting_.extract(job_id);
      if (found.empty()) continue;
      notify::Notification& told = found.mapped().notification;
      told.set_array_tasks(array.tasks);
      told.set_array_completed(array.completed);
      told.set_array_running(array.running);
      Spool(std::move(found.mapped()));
    }
  }
}

void Notifier::Ended(const std::string& job_id) {
  tails_.Forget(job_id);
  wishes_.erase(job_id);
  comments_.erase(job_id);
  sizes_.erase(job_id);
  arrays_.Gone(job_id);
}

void Notifier::Spool(News news) {
  auto shared = std::make_shared<const News>(std::move(news));
  const int64_t wall_ns = shared->notification.at_ns();
  auto job = [desk = desk_, shared, wall_ns, self = self_]() -> std::function<void()> {
    bool full = false;
    const std::string error = desk->Put(*shared, wall_ns, full);
    return [shared, self, error, full] {
      if (*self == nullptr) return;
      Notifier& notifier = **self;
      if (!error.empty()) notifier.refused_.push_back(*shared);
      notifier.OnSpooled(error, full);
    };
  };
  if (!disk_.Submit(std::move(job), shared->notification.ByteSizeLong())) {
    refused_.push_back(*shared);
    OnSpooled("the queue is full", false);
  }
}

void Notifier::OnSpooled(const std::string& error, bool full) {
  lost_full_ += full ? 1 : 0;
  while (refused_.size() > kMostRefused) {
    refused_.pop_front();
    ++lost_disk_;
  }
  if (error.empty() && !full && sender_ != nullptr) sender_->Wake();
}

// Of runs that had no daemon: it was restarted, or notifies of nothing then.
void Notifier::TakeOver(int64_t wall_ns) {
  if (place_.left.empty() || wall_ns < take_over_ns_) return;
  take_over_ns_ = wall_ns + kTakeOverNs;
  auto job = [desk = desk_, self = self_, folder = place_.left,
              wall_ns]() -> std::function<void()> {
    const size_t taken = desk->TakeOver(notify::LeftMessages(folder), wall_ns);
    if (taken == 0) return {};
    return [self, taken] {
      if (*self == nullptr) return;
      (*self)->log_.Info("took over the notifications of runs that had no daemon",
                         {{"count", std::to_string(taken)}});
      (*self)->OnSpooled({}, false);
    };
  };
  if (!disk_.Submit(std::move(job))) take_over_ns_ = wall_ns;
}

void Notifier::Tick(int64_t wall_ns) {
  Say();
  SpoolArrays(arrays_.TakeDue(wall_ns));
  TakeOver(wall_ns);
  if (wall_ns < retry_ns_) return;
  retry_ns_ = wall_ns + kRetryNs;
  for (News& news : std::exchange(refused_, {})) Spool(std::move(news));
  std::erase_if(seen_, [&](const auto& entry) {
    return entry.second.told.final() && entry.second.wall_ns + keep_ns_ < wall_ns;
  });
}

void Notifier::Say() {
  const std::string trouble = sender_ != nullptr ? sender_->counts().trouble : std::string();
  if (trouble == trouble_) return;
  trouble_ = trouble;
  if (trouble.empty()) {
    log_.Info("notifications are sent again");
  } else {
    log_.Warn("a notification cannot be sent and is tried again", {{"reason", trouble}});
  }
}

metrics::NotifyStatus Notifier::status() const {
  metrics::NotifyStatus status;
  NotifyCounts counts;
  if (sender_ != nullptr) counts = sender_->counts();
  status.sent = counts.sent;
  status.failed = counts.failed;
  status.pending = counts.pending;
  // In the order of kNotifyLosses.
  status.dropped = {counts.damaged, lost_disk_, counts.given_up, lost_full_, counts.refused};
  return status;
}

bool Notifier::Stop() {
  SpoolArrays(arrays_.TakeAll());
  *self_ = nullptr;
  disk_.Stop(kPatience);
  return sender_ == nullptr || sender_->Stop(kPatience);
}

}  // namespace rankscope::exporter
