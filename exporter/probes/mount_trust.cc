// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/mount_trust.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "exporter/owned_fd.h"

namespace rankscope::probes {
namespace {

// A user may have 100,000 mounts in a namespace of his own; who has more of them is not trusted.
constexpr size_t kMaxMounts = 4 << 20;

std::string ReadText(const std::string& path) {
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[16 << 10];
  while (file && text.size() < kMaxMounts) {
    const ssize_t n = read(file.get(), piece, sizeof piece);
    if (n <= 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  return text;
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view TakeField(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

int64_t MountOf(int fd) {
  const std::string text = ReadText("/proc/self/fdinfo/" + std::to_string(fd));
  constexpr std::string_view kId = "mnt_id:\t";
  const size_t at = text.find(kId);
  int64_t id = -1;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + kId.size(), text.data() + text.size(), id);
  return id;
}

// Whether only root can mount anything where this process is: whoever loads programs into the
// kernel is in root's user namespace himself.
bool IsInRootsNamespace(const std::string& proc_root, int32_t pid) {
  const std::string path = proc_root + '/' + std::to_string(pid) + "/ns/mnt";
  const OwnedFd mounts(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts) return false;
  const OwnedFd owner(ioctl(mounts.get(), NS_GET_USERNS));
  struct stat of_owner {};
  struct stat of_root {};
  return owner && fstat(owner.get(), &of_owner) == 0 && stat("/proc/self/ns/user", &of_root) == 0 &&
         of_owner.st_ino == of_root.st_ino && of_owner.st_dev == of_root.st_dev;
}

// Seen from the machine's first process, or from the daemon where that one shows nothing.
bool HostHasMounted(const std::string& proc_root, std::string_view device) {
  std::string mountinfo = ReadText(proc_root + "/1/mountinfo");
  if (mountinfo.empty()) mountinfo = ReadText("/proc/self/mountinfo");
  for (std::string_view rest = mountinfo; !rest.empty();) {
    const auto mount = ParseMountLine(TakeLine(rest));
    if (mount && mount->device == device) return IsRoots(*mount);
  }
  return false;
}

}  // namespace

// 36 35 98:0 /root /at rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue
std::optional<MountLine> ParseMountLine(std::string_view line) {
  MountLine mount;
  const std::string_view id = TakeField(line);
  if (std::from_chars(id.data(), id.data() + id.size(), mount.id).ec != std::errc()) {
    return std::nullopt;
  }
  TakeField(line);  // its parent's
  mount.device = TakeField(line);
  for (int i = 0; i < 3; ++i) TakeField(line);  // root, place, its own options
  while (!line.empty() && TakeField(line) != "-") continue;
  mount.type = TakeField(line);
  TakeField(line);  // what is mounted
  mount.options = TakeField(line);
  if (mount.type.empty() || mount.options.empty()) return std::nullopt;
  return mount;
}

std::optional<MountLine> FindMount(std::string_view mountinfo, int64_t id) {
  while (!mountinfo.empty()) {
    const auto mount = ParseMountLine(TakeLine(mountinfo));
    if (mount && mount->id == id) return mount;
  }
  return std::nullopt;
}

bool IsRoots(const MountLine& mount) {
  if (mount.type == "overlay") return true;
  const bool fuse = mount.type == "fuse" || mount.type == "fuseblk" ||
                    mount.type.starts_with("fuse.") || mount.type.starts_with("fuseblk.");
  if (!fuse) return false;
  for (std::string_view rest = mount.options; !rest.empty();) {
    const size_t end = std::min(rest.find(','), rest.size());
    if (rest.substr(0, end) == "user_id=0") return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool MayProbe(const std::string& proc_root, int32_t pid, int fd) {
  struct statfs system {};
  if (fstatfs(fd, &system) != 0) return false;
  const auto kind = static_cast<uint64_t>(system.f_type);
  if (kind != OVERLAYFS_SUPER_MAGIC && kind != FUSE_SUPER_MAGIC) return true;
  // The mounts first: a process can leave root's namespace, and never come back.
  const std::string mountinfo = ReadText(proc_root + '/' + std::to_string(pid) + "/mountinfo");
  const auto mount = FindMount(mountinfo, MountOf(fd));
  if (!mount) return false;
  if (IsRoots(*mount) && IsInRootsNamespace(proc_root, pid)) return true;
  // One of the host's, seen from a container of a user's.
  return HostHasMounted(proc_root, mount->device);
}

}  // namespace rankscope::probes
