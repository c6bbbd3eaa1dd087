// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/left_messages.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>

namespace rankscope::exporter::notify {
namespace {

constexpr std::string_view kSuffix = ".msg";
constexpr size_t kMostNotes = 64 << 10;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool IsAbsolute(const std::string& path) {
  return path.starts_with('/');
}

// Of root's making, and such that nobody can replace what another one has put there.
bool IsShared(const char* path) {
  struct stat info {};
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == 0 &&
         (info.st_mode & S_ISVTX) != 0 && access(path, W_OK | X_OK) == 0;
}

bool MakeFolders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0700);
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

// "1000.0123456789abcdef.msg"
std::optional<uint32_t> UserOf(std::string_view file) {
  uint32_t uid = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), uid);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest = file.substr(static_cast<size_t>(end - file.data()));
  const bool named = rest.size() == 17 + kSuffix.size() && rest[0] == '.' &&
                     rest.ends_with(kSuffix) &&
                     rest.substr(1, 16).find_first_not_of("0123456789abcdef") == rest.npos;
  return named ? std::optional(uid) : std::nullopt;
}

bool WriteWhole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

std::string ReadWhole(int fd, size_t most) {
  std::string bytes(most, '\0');
  size_t have = 0;
  while (have < most) {
    const ssize_t size = read(fd, bytes.data() + have, most - have);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    have += static_cast<size_t>(size);
  }
  bytes.resize(have);
  return bytes;
}

Error Failed(const std::string& path) {
  return Error{path + ": " + std::strerror(errno)};
}

}  // namespace

std::string FindNotifyConfig(const UserPlaces& places) {
  struct stat info {};
  if (lstat(kSiteConfig, &info) == 0) return kSiteConfig;
  std::string own;
  if (IsAbsolute(places.config_home)) {
    own = places.config_home;
  } else if (IsAbsolute(places.home)) {
    own = places.home + "/.config";
  }
  if (own.empty()) return {};
  own += "/rankscope/notify.yaml";
  return stat(own.c_str(), &info) == 0 ? own : std::string();
}

std::string FindLeftFolder(const UserPlaces& places) {
  if (IsShared(kSharedFolder)) return kSharedFolder;
  std::string own;
  if (IsAbsolute(places.state_home)) {
    own = places.state_home;
  } else if (IsAbsolute(places.home)) {
    own = places.home + "/.local/state";
  }
  if (own.empty()) return {};
  own += "/rankscope/notify";
  return MakeFolders(own) ? own : std::string();
}

Status LeftMessages::Leave(uint32_t uid, uint64_t random, std::string_view message) const {
  char name[64];
  std::snprintf(name, sizeof name, "%u.%016llx", uid, static_cast<unsigned long long>(random));
  const std::string path = folder_ + '/' + name + std::string(kSuffix);
  const std::string draft = folder_ + "/." + name + ".new";
  OwnedFd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Failed(draft);
  if (!WriteWhole(fd.get(), message) || rename(draft.c_str(), path.c_str()) != 0) {
    const Error error = Failed(path);
    unlink(draft.c_str());
    return error;
  }
  return {};
}

// A user can mount a file system of his own on a file that is his, and give out a lease on it: the
// kernel opens neither here, and waits for nobody.
OwnedFd LeftMessages::OpenPlain(const std::string& file, int flags,
                                std::optional<uint32_t> owner) const {
  const OwnedFd folder(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return {};
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? 0600 : 0;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  OwnedFd fd(static_cast<int>(syscall(SYS_openat2, folder.get(), file.c_str(), &how, sizeof how)));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return {};
  const bool plain = S_ISREG(info.st_mode) && info.st_nlink == 1;
  return plain && (!owner || info.st_uid == *owner) ? std::move(fd) : OwnedFd();
}

std::vector<LeftMessages::Left> LeftMessages::Read(std::optional<uint32_t> uid,
                                                   size_t& damaged) const {
  std::vector<Left> all;
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(folder_.c_str()));
  if (folder == nullptr) return all;
  std::map<uint32_t, size_t> counts;
  size_t looked = 0;
  for (const dirent* entry = readdir(folder.get()); entry != nullptr && looked < kMostFiles;
       entry = readdir(folder.get())) {
    ++looked;
    const std::string file = entry->d_name;
    const std::optional<uint32_t> owner = UserOf(file);
    if (!owner || (uid && *owner != *uid) || counts[*owner] >= kMostOfUser) continue;
    const OwnedFd fd = OpenPlain(file, O_RDONLY, owner);
    if (!fd) continue;
    ++counts[*owner];
    Left left{file, *owner, {}};
    const std::string bytes = ReadWhole(fd.get(), kMostFile + 1);
    if (!bytes.empty() && bytes.size() <= kMostFile && left.message.ParseFromString(bytes)) {
      all.push_back(std::move(left));
    } else {
      ++damaged;
      if (!Remove(file).ok()) continue;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Left& a, const Left& b) {
    return a.message.spooled_ns() < b.message.spooled_ns();
  });
  return all;
}

Status LeftMessages::Replace(const Left& left) const {
  const std::string path = folder_ + '/' + left.file;
  const std::string draft = folder_ + "/." + left.file + ".new";
  unlink(draft.c_str());
  OwnedFd fd(open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Failed(draft);
  if (!WriteWhole(fd.get(), left.message.SerializeAsString()) || fsync(fd.get()) != 0 ||
      rename(draft.c_str(), path.c_str()) != 0)
    return Failed(path);
  return {};
}

Status LeftMessages::Remove(const std::string& file) const {
  const std::string path = folder_ + '/' + file;
  return unlink(path.c_str()) == 0 || errno == ENOENT ? Status() : Status(Failed(path));
}

OwnedFd LeftMessages::Lock(uint32_t uid) const {
  OwnedFd fd = OpenPlain(std::to_string(uid) + ".lock", O_RDWR | O_CREAT, uid);
  // Somebody else has taken the name: then there is no lock, and a message may come twice.
  if (!fd) return OwnedFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd) : OwnedFd();
}

OwnedFd LeftMessages::LockOf(uint32_t uid, bool& none) const {
  OwnedFd fd = OpenPlain(std::to_string(uid) + ".lock", O_RDONLY, uid);
  none = !fd;
  return fd && flock(fd.get(), LOCK_EX | LOCK_NB) == 0 ? std::move(fd) : OwnedFd();
}

std::string LeftMessages::ReadNotes(uint32_t uid) const {
  const OwnedFd fd = OpenPlain(std::to_string(uid) + ".sent", O_RDONLY, uid);
  if (!fd) return {};
  struct stat info {};
  if (fstat(fd.get(), &info) == 0 && info.st_size > static_cast<off_t>(kMostNotes))
    lseek(fd.get(), info.st_size - static_cast<off_t>(kMostNotes), SEEK_SET);
  return ReadWhole(fd.get(), kMostNotes);
}

void LeftMessages::AddNote(uint32_t uid, const std::string& line) const {
  const OwnedFd fd = OpenPlain(std::to_string(uid) + ".sent", O_RDWR | O_CREAT | O_APPEND, uid);
  if (!fd) return;
  struct stat info {};
  // What is older than the limits was said long ago.
  if (fstat(fd.get(), &info) == 0 && info.st_size > static_cast<off_t>(2 * kMostNotes)) {
    const std::string kept = ReadNotes(uid);
    if (ftruncate(fd.get(), 0) != 0 || !WriteWhole(fd.get(), kept)) return;
  }
  if (!WriteWhole(fd.get(), line + '\n')) return;
}

}  // namespace rankscope::exporter::notify
