// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/library_finder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "exporter/loop/user_path.h"

namespace rankscope::probes {
namespace {

// A process with 60,000 mappings, the kernel's default limit, has 6 MiB of them.
constexpr size_t kMaxMaps = 16 << 20;
constexpr size_t kMaxStatus = 16 << 10;

std::optional<FileVersion> Identify(int fd) {
  struct stat status {};
  struct statfs system {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const auto ns = [](const timespec& time) {
    return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  };
  FileVersion version;
  const bool overlay =
      fstatfs(fd, &system) == 0 && static_cast<uint64_t>(system.f_type) == OVERLAYFS_SUPER_MAGIC;
  version.device = overlay ? 0 : status.st_dev;
  version.inode = status.st_ino;
  version.bytes = status.st_size;
  version.written_ns = ns(status.st_mtim);
  version.changed_ns = ns(status.st_ctim);
  return version;
}

// The file that a process has mapped; nothing where it is not to be had, with errno.
OwnedFd FindMapped(const std::string& proc_root, int32_t pid, const Mapping& mapping,
                   exporter::UserMounts& mounts) {
  // CAP_CHECKPOINT_RESTORE leads to the mapped file itself; else its path, if that is still the
  // file.
  OwnedFd place = exporter::OpenProcessLink(proc_root, pid, "map_files/" + mapping.range);
  if (place || errno == EMFILE || errno == ENFILE) return place;
  const OwnedFd root = exporter::OpenProcessLink(proc_root, pid, "root");
  if (!root) return {};
  auto walked = exporter::WalkUserPath(root.get(), root.get(), mapping.path, mounts);
  errno = 0;
  struct statx facts {};
  if (!walked ||
      statx(walked->get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &facts) != 0)
    return {};
  return facts.stx_ino == mapping.inode ? std::move(walked).value() : OwnedFd();
}

// What it names is looked at before it is opened: opening a device does things.
bool IsRegular(int place) {
  struct statx facts {};
  return statx(place, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) == 0 &&
         S_ISREG(facts.stx_mode);
}

int64_t NsOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

bool IsSettled(const FileVersion& version, const LibraryFinder::Settled& settled) {
  const auto found = settled.find(KeyOf(version));
  return found != settled.end() && found->second == version;
}

}  // namespace

FileKey KeyOf(const FileVersion& version) {
  if (version.device == 0) return version;
  FileKey key;
  key.device = version.device;
  key.inode = version.inode;
  return key;
}

LibraryFinder::Clocks LibraryFinder::OwnClocks() {
  return {[] { return NsOf(CLOCK_MONOTONIC); }, [] { return NsOf(CLOCK_THREAD_CPUTIME_ID); }};
}

LibraryFinder::LibraryFinder(std::string proc_root, Names wanted, Clocks clocks)
    : proc_(std::move(proc_root)), wanted_(std::move(wanted)), clocks_(std::move(clocks)) {}

std::string LibraryFinder::OfProcess(int32_t pid, const std::string& name) const {
  return proc_ + '/' + std::to_string(pid) + '/' + name;
}

LibraryFinder::Round LibraryFinder::Look(const std::vector<ProcessKey>& processes,
                                         const Settled& settled) {
  Round round;
  charged_ns_ = clocks_.cpu_ns();
  const std::set<ProcessKey> all(processes.begin(), processes.end());
  std::erase_if(known_, [&all](const auto& known) { return !all.contains(known.first); });
  // Whoever the allowance did not suffice for is the first of the next round.
  std::vector<ProcessKey> order(all.lower_bound(next_), all.end());
  order.insert(order.end(), all.begin(), all.lower_bound(next_));
  next_ = {};
  for (const ProcessKey& process : order) {
    Known& known = known_[process];
    const int64_t now_ns = clocks_.now_ns();
    if (cpu_seconds_.Left(now_ns)) {
      LookAt(process, settled, known, round);
      Charge();
    } else {
      if (next_ == ProcessKey{}) next_ = process;
      round.trouble = "reading a user's processes and libraries takes longer than allowed";
      if (now_ns - known.looked_ns > kOldNs) known.complete = false;
    }
    if (known.looked_ns != 0) round.seen.emplace(process, known);
  }
  return round;
}

void LibraryFinder::Charge() {
  const int64_t now_ns = clocks_.cpu_ns();
  cpu_seconds_.Spend(static_cast<double>(now_ns - charged_ns_) * 1e-9);
  charged_ns_ = now_ns;
}

void LibraryFinder::LookAt(const ProcessKey& process, const Settled& settled, Known& known,
                           Round& round) {
  std::string mark =
      ParseCodeMark(exporter::ReadProcText(OfProcess(process.pid, "status"), kMaxStatus));
  known.looked_ns = mark.empty() ? 0 : clocks_.now_ns();
  if (mark.empty()) return;
  const bool all_settled =
      std::all_of(known.mapped.begin(), known.mapped.end(),
                  [&settled](const FileKey& file) { return settled.contains(file); });
  if (known.code_mark == mark && all_settled) return;
  known.mapped.clear();
  known.unread = false;
  bool whole = true;
  exporter::UserMounts mounts(proc_, process.pid);
  for (const Mapping& mapping :
       ParseMappings(exporter::ReadProcText(OfProcess(process.pid, "maps"), kMaxMaps))) {
    whole = Examine(process.pid, mapping, mounts, settled, known, round);
    if (!whole) break;
  }
  known.complete = whole && !known.unread;
  // Else it is looked at again.
  known.code_mark = whole ? std::move(mark) : std::string();
}

// False when there is no room for more in this round.
bool LibraryFinder::Examine(int32_t pid, const Mapping& mapping, exporter::UserMounts& mounts,
                            const Settled& settled, Known& known, Round& round) {
  const OwnedFd place = FindMapped(proc_, pid, mapping, mounts);
  if (!place && (errno == EMFILE || errno == ENFILE)) {
    round.trouble = "no file descriptor is left to open a library; raise the limit of open files";
    return false;
  }
  if (!place || !IsRegular(place.get())) return true;
  // While the kernel places a probe it keeps every fork of the machine waiting (dup_mmap_sem in
  // kernel/events/uprobes.c) and reads the file's page: whoever serves that could keep it so.
  if (!mounts.Refusal(place.get()).empty()) {
    known.unread = true;
    round.trouble = "a library is on a file system that a user mounted";
    return true;
  }
  OwnedFd file = exporter::OpenLooked(place.get());
  if (!file) return true;
  const auto version = Identify(file.get());
  if (!version) return true;
  const auto found = files_.find(*version);
  Content content = Content::kNothing;
  if (found != files_.end() &&
      (found->second != Content::kWanted || IsSettled(*version, settled))) {
    content = found->second;
  } else {
    if (!cpu_seconds_.Left(clocks_.now_ns()) || round.fresh.size() >= kMaxFresh) return false;
    content = Read(*version, mapping.path, std::move(file), round);
    Charge();
  }
  if (content == Content::kWanted) known.mapped.push_back(KeyOf(*version));
  if (content == Content::kUnread) {
    known.unread = true;
    round.trouble = "a library has too many symbols";
  }
  return true;
}

LibraryFinder::Content LibraryFinder::Read(const FileVersion& version, const std::string& path,
                                           OwnedFd file, Round& round) {
  auto elf = ReadElf(ReaderOf(file.get()), wanted_);
  Content content = Content::kNothing;
  if (elf && elf->cut) {
    content = Content::kUnread;
  } else if (elf && !elf->functions.empty()) {
    content = Content::kWanted;
  }
  Remember(version, content);
  if (content == Content::kWanted)
    round.fresh.push_back({version, path, std::move(file), std::move(*elf)});
  return content;
}

void LibraryFinder::Remember(const FileVersion& version, Content content) {
  if (!files_.insert_or_assign(version, content).second) return;
  order_.push_back(version);
  if (order_.size() <= kMaxFiles) return;
  files_.erase(order_.front());
  order_.pop_front();
}

}  // namespace rankscope::probes
