// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tells people of jobs: decides on the loop what is news, lets a thread of its own find the
// addressees and write it to the spool, and another one send it. An end is told when its verdict is
// on the disk, so that whoever reads the mail finds it. Loop thread only.
//
//   loop: verdict -> news -> disk thread: addressees, spool -> sender: message by message
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/job_summary.h"
#include "detectors/model/observation.h"
#include "detectors/status/job_status.h"
#include "exporter/config/notify_config.h"
#include "exporter/daemon/notify_sender.h"
#include "exporter/daemon/notify_spool.h"
#include "exporter/loop/disk_thread.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/logger.h"
#include "exporter/loop/user_directory.h"
#include "exporter/metrics/published.h"
#include "exporter/notify/array_room.h"
#include "exporter/notify/log_tails.h"

namespace rankscope::exporter {

class Notifier {
 public:
  struct Place {
    std::string folder;  // notify/ of the state directory
    std::string node;
    std::string left;  // where wrappers without a daemon leave messages; empty: nowhere
  };

  // `users`: whose names rules are about.
  Notifier(EventLoop& loop, Logger& log, NotifyConfig config, Place place,
           std::shared_ptr<UserDirectory> users = std::make_shared<UserDirectory>());
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Reads what was told before, at once, and begins to send what was left.
  Status Open(int64_t wall_ns, Duration keep);

  // From now on; what waits goes by it, too.
  void SetConfig(NotifyConfig config);

  void Heard(const LogLine& line);
  // What a user asks for; the last one counts, and that of another user than the job's does not.
  void Wished(const std::string& job_id, int64_t uid, std::string wish);
  // The same by the job's comment, of whose job Slurm knows; where the job itself says nothing.
  void WishedInComment(const std::string& job_id, std::string wish);
  // How many tasks the array of this job has.
  void Sized(const std::string& job_id, int32_t tasks);
  // The job's verdict has changed.
  void Judged(const JobStatus& job, const std::optional<JobSummary>& summary, int64_t wall_ns);
  // Its final verdict is on the disk.
  void Kept(const std::string& job_id);
  // No more comes of the job.
  void Ended(const std::string& job_id);
  // Once a second or so: what the disk has refused is tried again; failures are logged.
  void Tick(int64_t wall_ns);

  metrics::NotifyStatus status() const;
  // False: something was left behind.
  bool Stop();

 private:
  struct Desk;  // of the disk thread
  struct News {
    notify::Notification notification;
    bool own = false;
    std::string wish;
    std::optional<std::vector<proto::Delivery>> among = {};  // only these; nothing: all
    bool claimed = false;                                    // it is a user's word
    notify::ArrayRoom::Task task = {};
  };
  notify::ArrayRoom::Task TaskOf(const JobStatus& job) const;
  // An array's ends, as one message.
  void SpoolArrays(const std::vector<notify::ArrayRoom::Told>& arrays);
  void Spool(News news);
  void OnSpooled(const std::string& error, bool full);
  void TakeOver(int64_t wall_ns);
  void Say();

  EventLoop& loop_;
  Logger& log_;
  const Place place_;
  std::shared_ptr<Desk> desk_;
  DiskThread disk_;
  std::unique_ptr<NotifySender> sender_;
  notify::LogTails tails_;
  bool quotes_log_ = false;
  struct Seen {
    proto::ToldJob told;  // whether or not anybody wanted to know
    int64_t wall_ns = 0;
  };
  std::map<std::string, Seen> seen_;
  std::map<std::string, News> held_;  // ends whose verdicts are not on the disk yet
  notify::ArrayRoom arrays_;
  std::map<std::string, News> waiting_;          // ends that wait there
  std::map<std::string, int32_t> sizes_;         // of arrays, by the job of a task
  std::map<std::string, std::string> comments_;  // wishes in them, by job
  struct Wish {
    int64_t uid = -1;
    std::string text;
  };
  std::map<std::string, Wish> wishes_;
  std::deque<News> refused_;  // by the disk
  int64_t lost_disk_ = 0, lost_full_ = 0;
  int64_t keep_ns_ = 0;
  int64_t retry_ns_ = 0;      // wall time
  int64_t take_over_ns_ = 0;  // the same
  std::string trouble_;       // as last logged
  std::shared_ptr<Notifier*> self_;
};

}  // namespace rankscope::exporter
