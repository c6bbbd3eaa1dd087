// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Messages that a `rankscope run` without a daemon leaves behind, one file each: UID.HEX.msg, whole
// from the moment that it has its name. They wait in /var/spool/rankscope, where root has made that
// as /tmp is, else in the user's own state folder. Whoever sends those of a user holds UID.lock.
//
// Everybody may write into the shared folder, root reads there: no link is followed, nothing is
// opened that is mounted there, is no plain file, or belongs to another user than its name says.
// Any thread; all of it waits for the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/proto/notification.pb.h"

namespace rankscope::exporter::notify {

// Who is told, as the site has it; and where its machines keep what is to be sent.
inline constexpr char kSiteConfig[] = "/etc/rankscope/notify.yaml";
inline constexpr char kSharedFolder[] = "/var/spool/rankscope";

// Of a user, as the environment says; empty: it does not.
struct UserPlaces {
  std::string home, config_home, state_home;  // HOME, XDG_CONFIG_HOME, XDG_STATE_HOME
};

// The configuration that a process of the user's reads: the site's where there is one, whatever is
// in it, else his own; empty: there is none.
std::string FindNotifyConfig(const UserPlaces& places);
// Where his messages wait. Makes his own folder; empty: there is no place.
std::string FindLeftFolder(const UserPlaces& places);

class LeftMessages {
 public:
  static constexpr size_t kMostOfUser = 256;     // that are read at once
  static constexpr size_t kMostFiles = 8192;     // that are looked at
  static constexpr size_t kMostFile = 64 << 10;  // bytes; a message has some 4 kB
  // What nobody could send for a day is too old to be told.
  static constexpr int64_t kMostAgeNs = int64_t{24} * 3600 * 1'000'000'000;

  explicit LeftMessages(std::string folder) : folder_(std::move(folder)) {}
  const std::string& folder() const { return folder_; }

  // `random` tells the messages of a user apart. Not synced: it survives the death of every
  // process, and not a power loss.
  Status Leave(uint32_t uid, uint64_t random, std::string_view message) const;

  struct Left {
    std::string file;
    uint32_t uid = 0;
    proto::SpooledNotification message;
  };
  // Of one user or of all, in the order of their times. What cannot be read is removed and counted.
  std::vector<Left> Read(std::optional<uint32_t> uid, size_t& damaged) const;
  Status Replace(const Left& left) const;
  Status Remove(const std::string& file) const;

  // Of the calling user. Empty: another process of his is at it.
  OwnedFd Lock(uint32_t uid) const;
  // For root: empty where the user's own sender is at it. `none`: there has never been one.
  OwnedFd LockOf(uint32_t uid, bool& none) const;

  // Lines that the senders of a user keep: the last bytes, and one more line.
  std::string ReadNotes(uint32_t uid) const;
  void AddNote(uint32_t uid, const std::string& line) const;

 private:
  OwnedFd OpenPlain(const std::string& file, int flags, std::optional<uint32_t> owner) const;

  std::string folder_;
};

}  // namespace rankscope::exporter::notify
