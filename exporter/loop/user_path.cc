// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_path.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "exporter/loop/user_threads.h"

namespace rankscope::exporter {
namespace {

// A node with a thousand containers has some 100,000 mounts of 100 bytes.
constexpr size_t kMaxMountInfo = 16 << 20;
constexpr int kMaxLinks = 40;  // as the kernel follows, MAXSYMLINKS
constexpr size_t kMaxSteps = 1024;
constexpr int kOpenFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;

struct Looked {
  bool told = false;
  bool has_mount = false;
  uint64_t mount = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  mode_t mode = 0;

  bool Same(const Looked& other) const {
    return device == other.device && inode == other.inode && mount == other.mount;
  }
  // Older kernels than 5.8 tell no mount: another device is another mount, too.
  bool SameMount(const Looked& other) const {
    return mount == other.mount && device == other.device;
  }
};

// What the kernel knows by itself.
Looked Look(int fd) {
  struct statx facts {};
  Looked looked;
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
            STATX_TYPE | STATX_INO | STATX_MNT_ID, &facts) != 0) {
    return looked;
  }
  looked.told = true;
  looked.has_mount = (facts.stx_mask & STATX_MNT_ID) != 0;
  looked.mount = looked.has_mount ? facts.stx_mnt_id : 0;
  looked.device = uint64_t{facts.stx_dev_major} << 32 | facts.stx_dev_minor;
  looked.inode = facts.stx_ino;
  looked.mode = facts.stx_mode;
  return looked;
}

uint64_t Inode(int fd) {
  struct stat facts {};
  return fd >= 0 && fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

// Whether only root can mount in this mount namespace: it belongs to our own user namespace.
bool IsOwnedByOurs(const std::string& process, const std::string& proc_root) {
  const ProcessAccess access;
  const OwnedFd space(open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  const OwnedFd owner(space ? ioctl(space.get(), NS_GET_USERNS) : -1);
  const OwnedFd ours(open((proc_root + "/self/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  const uint64_t inode = Inode(owner.get());
  return inode != 0 && inode == Inode(ours.get());
}

// Of files that are in memory alone; their file system is the kernel's own.
uint64_t DeviceOfMemory() {
  static const uint64_t device = [] {
    const OwnedFd file(memfd_create("rankscope", MFD_CLOEXEC));
    return file ? Look(file.get()).device : 0;
  }();
  return device;
}

uint64_t Number(std::string_view text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Puts the steps of `path` before those that are left, in the order of a stack.
void Prepend(std::string_view path, std::vector<std::string>& left) {
  std::vector<std::string> steps;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0) steps.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  left.insert(left.end(), std::make_move_iterator(steps.rbegin()),
              std::make_move_iterator(steps.rend()));
}

Error Failed(int error) {
  const bool none = error == ENOENT || error == ENOTDIR;
  return Error{none ? std::string() : std::string(std::strerror(error))};
}

}  // namespace

std::string ReadProcText(const std::string& path, size_t limit) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  char piece[16 << 10];
  while (text.size() < limit) {
    const ssize_t n = read(file.get(), piece, sizeof piece);
    if (n <= 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  return text;
}

std::map<uint64_t, MountFacts> ParseMountInfo(std::string_view text) {
  std::map<uint64_t, MountFacts> mounts;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // "36 35 98:0 /a /b rw,noatime shared:1 - ext3 /dev/root rw": spaces within are escaped.
    const size_t parent = line.find(' ');
    const size_t device = parent == line.npos ? line.npos : line.find(' ', parent + 1);
    const size_t type = line.find(" - ");
    if (device == line.npos || type == line.npos || type < device) continue;
    const std::string_view numbers =
        line.substr(device + 1, line.find(' ', device + 1) - device - 1);
    const size_t colon = numbers.find(':');
    if (colon == numbers.npos) continue;
    const std::string_view name = line.substr(type + 3);
    const std::string options = "," + std::string(line.substr(line.rfind(' ') + 1)) + ",";
    mounts[Number(line)] = {Number(numbers) << 32 | Number(numbers.substr(colon + 1)),
                            std::string(name.substr(0, name.find(' '))),
                            options.find(",user_id=0,") != std::string::npos};
  }
  return mounts;
}

UserMounts::UserMounts(std::string proc_root, int32_t pid) : proc_(std::move(proc_root)) {
  // What a chroot hides is seen by the first process of the machine; a daemon with mounts of its
  // own sees yet others.
  owners_ = {proc_ + '/' + std::to_string(pid), proc_ + "/1", proc_ + "/self"};
}

const UserMounts::List& UserMounts::Load(size_t which) {
  while (lists_.size() <= which) {
    const std::string& owner = owners_[lists_.size()];
    lists_.push_back({ParseMountInfo(ReadProcText(owner + "/mountinfo", kMaxMountInfo)),
                      IsOwnedByOurs(owner, proc_)});
  }
  return lists_[which];
}

std::string UserMounts::Judge(size_t which, const MountFacts& mount) {
  const bool fuse = mount.type.starts_with("fuse");
  if (!fuse && mount.type != "overlay") return {};
  // Within a user's namespaces his own id is shown as 0; what the host has mounted is seen there,
  // too.
  const bool by_root = Load(which).by_root || IsMountedByRoot(mount);
  if (by_root && (!fuse || mount.served_by_root)) return {};
  return fuse ? "on a file system that a user serves (" + mount.type + ")"
              : "on an overlay that a user has mounted";
}

bool UserMounts::IsMountedByRoot(const MountFacts& mount) {
  for (size_t i = 0; i < owners_.size(); ++i) {
    const List& list = Load(i);
    if (!list.by_root) continue;
    for (const auto& [id, other] : list.mounts) {
      if (other.device == mount.device && other.type == mount.type &&
          other.served_by_root == mount.served_by_root) {
        return true;
      }
    }
  }
  return false;
}

std::string UserMounts::Refusal(int fd) {
  const Looked looked = Look(fd);
  if (!looked.told) return "on a file system whose mount cannot be determined";
  for (size_t i = 0; i < owners_.size(); ++i) {
    const List& list = Load(i);
    if (looked.has_mount) {
      const auto found = list.mounts.find(looked.mount);
      if (found != list.mounts.end()) return Judge(i, found->second);
      continue;
    }
    for (const auto& [id, mount] : list.mounts) {
      if (mount.device == looked.device) return Judge(i, mount);
    }
  }
  if (looked.device == DeviceOfMemory()) return {};
  return "on a file system that is not mounted in the daemon's or the process's mount namespace";
}

Result<OwnedFd> WalkUserPath(int root, int working_directory, std::string_view path,
                             UserMounts& mounts) {
  if (path.empty() || path.size() >= PATH_MAX || path.find('\0') != path.npos)
    return Error{"not the path of a file"};
  const Looked top = Look(root);
  const auto at = [](int fd) { return OwnedFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); };
  OwnedFd now = at(path[0] == '/' ? root : working_directory);
  if (!now) return Failed(errno);
  Looked here = Look(now.get());
  if (std::string refusal = mounts.Refusal(now.get()); !refusal.empty()) return Error{refusal};
  std::vector<std::string> left;
  Prepend(path, left);
  for (int links = 0; !left.empty();) {
    if (left.size() > kMaxSteps) return Error{"a path with too many components"};
    const std::string step = std::move(left.back());
    left.pop_back();
    if (step == "." || (step == ".." && here.Same(top))) continue;
    OwnedFd next(openat(now.get(), step.c_str(), kOpenFlags));
    if (!next) return Failed(errno);
    const Looked there = Look(next.get());
    if (!there.told || !there.SameMount(here)) {
      if (std::string refusal = mounts.Refusal(next.get()); !refusal.empty()) return Error{refusal};
    }
    if (!S_ISLNK(there.mode) || left.empty()) {
      now = std::move(next);
      here = there;
      continue;
    }
    if (++links > kMaxLinks) return Error{std::strerror(ELOOP)};
    char target[PATH_MAX];
    const ssize_t size = readlinkat(next.get(), "", target, sizeof target);
    if (size <= 0) return Failed(size < 0 ? errno : ENOENT);
    const std::string_view text(target, static_cast<size_t>(size));
    Prepend(text, left);
    if (text[0] != '/') continue;
    now = at(root);
    if (!now) return Failed(errno);
    here = top;
  }
  return now;
}

OwnedFd OpenLooked(int path_fd) {
  const std::string self = "/proc/self/fd/" + std::to_string(path_fd);
  return OwnedFd(open(self.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

OwnedFd OpenProcessLink(const std::string& proc_root, int32_t pid, std::string_view link) {
  const std::string path = proc_root + '/' + std::to_string(pid) + '/' + std::string(link);
  const ProcessAccess access;
  return OwnedFd(open(path.c_str(), O_PATH | O_CLOEXEC));
}

}  // namespace rankscope::exporter
