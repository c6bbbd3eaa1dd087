// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Keeps the files of one folder as their owner's memory is, without waiting for the disk: the owner
// says what has changed, and the files follow on a thread of their own, some at a time. What the
// disk refuses waits and is tried again, more and more rarely, until it is taken or changes again.
// Loop thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/time.h"
#include "exporter/loop/disk_thread.h"
#include "exporter/loop/event_loop.h"

namespace rankscope::exporter {

class DocumentFolder {
 public:
  struct File {
    std::string name;
    std::optional<std::string> content;  // none: the file goes
  };
  struct Hooks {
    // The files of a document as they should be now, whether it is there or not.
    std::function<std::vector<File>(const std::string& key)> render;
    // They are so on the disk; null: nobody asks.
    std::function<void(const std::string& key)> on_kept = nullptr;
  };

  // At once: below 1 MB of verdicts, and one sync of the folder for all.
  static constexpr size_t kMostAtOnce = 32;
  static constexpr Duration kFirstRetry = Seconds(1);
  static constexpr Duration kLongestRetry = Seconds(30);

  DocumentFolder(EventLoop& loop, DiskThread& disk, Hooks hooks);
  ~DocumentFolder();
  DocumentFolder(const DocumentFolder&) = delete;
  DocumentFolder& operator=(const DocumentFolder&) = delete;

  // Before this nothing is written, and nothing waits.
  void Open(std::string directory) { directory_ = std::move(directory); }

  void Changed(const std::string& key);

  // Documents whose files are not yet as they should be.
  size_t waiting() const { return waiting_.size(); }
  bool IsWaiting(const std::string& key) const { return waiting_.contains(key); }
  // That the disk has refused, each time.
  int64_t errors() const { return errors_; }
  // Why the last attempt failed; empty: it did not.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Document {
    std::string key;
    int64_t change = 0;
    std::vector<File> files;
  };
  using Batch = std::vector<Document>;

  void Write();
  Batch Next();
  void OnWritten(const Batch& batch, const std::vector<Status>& outcomes);
  void TryLater();

  EventLoop& loop_;
  DiskThread& disk_;
  const Hooks hooks_;
  std::string directory_;
  std::map<std::string, int64_t> waiting_;  // the number of its last change
  int64_t changes_ = 0;
  std::string last_tried_;  // the next batch begins behind it
  bool in_flight_ = false;
  Duration retry_ = kFirstRetry;
  EventLoop::TimerId retry_timer_ = 0;
  int64_t errors_ = 0;
  std::string trouble_;
  std::shared_ptr<DocumentFolder*> self_;  // null for results that come after it is gone
};

}  // namespace rankscope::exporter
