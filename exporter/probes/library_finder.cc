// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/library_finder.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

namespace rankscope::probes {
namespace {

// A process with 60,000 mappings, the kernel's default limit, has 6 MiB of them.
constexpr size_t kMaxMaps = 16 << 20;
constexpr size_t kMaxStatus = 16 << 10;

std::string ReadText(const std::string& path, size_t limit) {
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

std::string_view TakeField(std::string_view& line) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view field = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return field;
}

std::optional<FileIdentity> Identify(int fd) {
  struct stat status {};
  struct statfs system {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  FileIdentity identity;
  const bool overlay =
      fstatfs(fd, &system) == 0 && static_cast<uint64_t>(system.f_type) == OVERLAYFS_SUPER_MAGIC;
  identity.device = overlay ? 0 : status.st_dev;
  identity.inode = status.st_ino;
  identity.bytes = status.st_size;
  identity.changed_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return identity;
}

}  // namespace

std::vector<Mapping> ParseMappings(std::string_view maps) {
  std::vector<Mapping> mappings;
  std::set<std::pair<std::string_view, uint64_t>> known;
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    const std::string_view range = TakeField(line);
    const std::string_view rights = TakeField(line);
    TakeField(line);  // offset
    const std::string_view device = TakeField(line);
    const std::string_view inode = TakeField(line);
    if (rights.size() < 3 || rights[2] != 'x') continue;
    uint64_t number = 0;
    std::from_chars(inode.data(), inode.data() + inode.size(), number);
    if (number == 0 || !known.emplace(device, number).second) continue;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    mappings.push_back({std::string(range), std::string(device), number, std::string(line)});
  }
  return mappings;
}

std::string ParseCodeMark(std::string_view status) {
  std::string mark;
  bool mapped = false;
  while (!status.empty()) {
    const size_t end = std::min(status.find('\n'), status.size());
    const std::string_view line = status.substr(0, end);
    status.remove_prefix(std::min(end + 1, status.size()));
    const bool size = line.starts_with("VmExe:") || line.starts_with("VmLib:");
    if (size || line.starts_with("Name:")) mark.append(line);
    mapped |= size;
  }
  return mapped ? mark : std::string();
}

LibraryFinder::LibraryFinder(std::string proc_root, Names wanted)
    : proc_(std::move(proc_root)), wanted_(std::move(wanted)) {}

std::string LibraryFinder::OfProcess(int32_t pid, const std::string& name) const {
  return proc_ + '/' + std::to_string(pid) + '/' + name;
}

LibraryFinder::Look LibraryFinder::LookAt(const ProcessKey& process) {
  Look look;
  std::string mark = ParseCodeMark(ReadText(OfProcess(process.pid, "status"), kMaxStatus));
  if (mark.empty()) return look;
  Seen& seen = seen_[process];
  if (seen.code_mark == mark) {
    look.mapped = seen.mapped;
    return look;
  }
  seen.code_mark = std::move(mark);
  for (const Mapping& mapping : ParseMappings(ReadText(OfProcess(process.pid, "maps"), kMaxMaps))) {
    Examine(process.pid, mapping, look);
  }
  seen.mapped = look.mapped;
  return look;
}

void LibraryFinder::Examine(int32_t pid, const Mapping& mapping, Look& look) {
  // CAP_CHECKPOINT_RESTORE opens the mapped file itself; else its path, if that is still the file.
  OwnedFd file(open(OfProcess(pid, "map_files/" + mapping.range).c_str(),
                    O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) {
    file = OwnedFd(
        open((OfProcess(pid, "root") + mapping.path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  }
  if (!file) return;
  const auto identity = Identify(file.get());
  if (!identity) return;
  if (const auto known = files_.find(*identity); known != files_.end()) {
    if (known->second) look.mapped.push_back(*identity);
    return;
  }
  const ReadAt read = [&file](uint64_t offset, std::span<std::byte> into) {
    size_t total = 0;
    while (total < into.size()) {
      const ssize_t n = pread(file.get(), into.data() + total, into.size() - total,
                              static_cast<off_t>(offset + total));
      if (n <= 0) break;
      total += static_cast<size_t>(n);
    }
    return total;
  };
  auto elf = ReadElf(read, wanted_);
  const bool has = elf && !elf->functions.empty();
  if (order_.size() >= kMaxFiles) {
    files_.erase(order_.front());
    order_.pop_front();
  }
  files_[*identity] = has;
  order_.push_back(*identity);
  if (!has) return;
  look.mapped.push_back(*identity);
  look.fresh.push_back({*identity, mapping.path, std::move(file), std::move(*elf)});
}

void LibraryFinder::Keep(const std::vector<ProcessKey>& processes) {
  const std::set<ProcessKey> kept(processes.begin(), processes.end());
  std::erase_if(seen_, [&kept](const auto& seen) { return !kept.contains(seen.first); });
}

}  // namespace rankscope::probes
