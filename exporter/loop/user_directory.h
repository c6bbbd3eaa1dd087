// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Names of users by their numbers, as the node's user database has them. That may be a directory
// service which hangs for minutes or for good: a thread of its own asks, what was answered is kept,
// and nobody waits longer than he says. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "detectors/model/time.h"

namespace rankscope::exporter {

// Asks and waits; empty: there is no such user, or nobody answers.
std::string NameInDatabase(uint32_t uid);

class UserDirectory {
 public:
  using Lookup = std::function<std::string(uint32_t uid)>;

  static constexpr size_t kMost = 4096;  // users; beyond, all are asked for anew
  // A name is asked for again after this, and used until another comes.
  static constexpr Duration kKeep = Seconds(600);
  // A number without a name.
  static constexpr Duration kRetry = Seconds(60);
  // Whoever would wait for an answer does not where one is as late as this.
  static constexpr Duration kStuck = Seconds(2);

  explicit UserDirectory(Lookup lookup = NameInDatabase);
  ~UserDirectory() { Stop(); }
  UserDirectory(const UserDirectory&) = delete;
  UserDirectory& operator=(const UserDirectory&) = delete;

  // What is known now; what is not is asked for. Never waits. Empty: nothing, or not yet.
  std::string Known(int64_t uid);
  // The same after the answer, or after `patience`.
  std::string Wait(int64_t uid, Duration patience);

  // Called with each user whose name is another than before, on the thread that asks.
  void OnName(std::function<void(int64_t uid)> tell);

  // Tells nobody any more. False: an answer is waited for, and the thread is left behind.
  bool Stop();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace rankscope::exporter
