// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The folder notify/ of the state directory: ID.msg, what is still to be sent, and JOB.told, what
// has been told of a job; each replaced as a whole, with a checksum. Bounded in files and bytes.
// Any thread, one at a time; all of it waits for the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/proto/notification.pb.h"

namespace rankscope::exporter {

class NotifySpool {
 public:
  // A message has some 4 kB with the lines of a log: what a day's outage of a mail server leaves.
  static constexpr size_t kMostMessages = 2000;
  static constexpr size_t kMostBytes = 16 << 20;
  static constexpr size_t kMostTold = 4096;  // of 200 bytes

  explicit NotifySpool(std::string folder) : folder_(std::move(folder)) {}

  // Makes the folder.
  Status Open() const;

  struct Waiting {
    std::string file;
    proto::SpooledNotification message;
  };
  // In the order of their times; an unreadable file is removed and counted.
  std::vector<Waiting> Messages(size_t& damaged) const;
  // Of jobs that were told of within `keep_ns`; the others' files are removed.
  std::vector<proto::ToldJob> Told(int64_t wall_ns, int64_t keep_ns) const;

  // False: the folder is full. An error: the disk refuses.
  Result<bool> Put(const proto::SpooledNotification& message, const proto::ToldJob& told) const;

  // The message has gone through `delivery`; the last one removes the file.
  Status Delivered(const std::string& file, const proto::Delivery& delivery) const;

  static std::string FileOf(const proto::Notification& notification);

 private:
  std::optional<proto::SpooledNotification> Read(const std::string& file) const;

  std::string folder_;
};

}  // namespace rankscope::exporter
