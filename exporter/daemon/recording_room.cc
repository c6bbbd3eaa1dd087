// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/recording_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "exporter/daemon/recording_writer.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr char kAside[] = "/removed";

// What the disk has given, and not what the files say: many small ones fill it as well.
int64_t SpaceOf(const std::string& path) {
  constexpr int64_t kBlock = 512;  // of st_blocks
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_blocks) * kBlock : 0;
}

int64_t SpaceOfFolder(const fs::path& folder) {
  int64_t bytes = SpaceOf(folder.string());
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    bytes += SpaceOf(file->path().string());
  }
  return bytes;
}

std::optional<uint32_t> OwnerOf(const std::string& mark) {
  const OwnedFd fd(open(mark.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  char text[32];
  const ssize_t size = fd ? read(fd.get(), text, sizeof text) : 0;
  return size > 0 ? RecordingWriter::OwnerIn({text, static_cast<size_t>(size)}) : std::nullopt;
}

void Look(const fs::path& path, bool quarantined, std::vector<RecordingFolder>& found) {
  RecordingFolder folder;
  folder.path = path.string();
  folder.name = path.filename().string();
  folder.bytes = SpaceOfFolder(path);
  const std::string mark = folder.path + "/finished";
  struct stat info {};
  const bool marked = lstat(mark.c_str(), &info) == 0;
  if (!marked && lstat(folder.path.c_str(), &info) != 0) return;
  folder.finished = marked || quarantined;
  folder.ended_ns =
      static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (marked) folder.uid = OwnerOf(mark);
  found.push_back(std::move(folder));
}

// Recordings whose owner nobody knows are one owner's.
int64_t OwnerKey(const RecordingFolder& folder) {
  return folder.uid ? static_cast<int64_t>(*folder.uid) : -1;
}

struct Share {
  int64_t bytes = 0;
  size_t folders = 0;
  std::vector<const RecordingFolder*> finished;  // newest first
};

}  // namespace

std::vector<RecordingFolder> ScanRecordings(const std::string& state_dir) {
  RemoveAside(state_dir);
  std::vector<RecordingFolder> found;
  for (const char* room : {"/jobs", "/quarantine"}) {
    const bool quarantined = std::string_view(room) == "/quarantine";
    std::error_code error;
    for (fs::directory_iterator entry(state_dir + room, error), end; !error && entry != end;
         entry.increment(error)) {
      Look(entry->path(), quarantined, found);
    }
  }
  return found;
}

std::vector<RecordingFolder> ToRemove(std::vector<RecordingFolder> folders, int64_t total_bytes,
                                      size_t most) {
  std::sort(folders.begin(), folders.end(), [](const RecordingFolder& a, const RecordingFolder& b) {
    return a.ended_ns > b.ended_ns;
  });
  std::map<int64_t, Share> shares;
  int64_t bytes = 0;
  size_t count = folders.size();
  for (const RecordingFolder& folder : folders) {
    Share& share = shares[OwnerKey(folder)];
    bytes += folder.bytes;
    share.bytes += folder.bytes;
    ++share.folders;
    if (folder.finished && !folder.in_use) share.finished.push_back(&folder);
  }
  // Who takes no more than his fair share loses nothing to those who do, though what they have is
  // in use.
  const auto owners = static_cast<int64_t>(std::max<size_t>(shares.size(), 1));
  std::vector<RecordingFolder> gone;
  while (bytes > total_bytes || count > most) {
    const bool by_bytes = bytes > total_bytes;
    Share* largest = nullptr;
    for (auto& [owner, share] : shares) {
      const bool beyond = by_bytes ? share.bytes > total_bytes / owners
                                   : share.folders > most / static_cast<size_t>(owners);
      if (share.finished.empty() || !beyond) continue;
      if (largest == nullptr ||
          (by_bytes ? share.bytes > largest->bytes : share.folders > largest->folders)) {
        largest = &share;
      }
    }
    if (largest == nullptr) break;
    const RecordingFolder& oldest = *largest->finished.back();
    largest->finished.pop_back();
    largest->bytes -= oldest.bytes;
    --largest->folders;
    bytes -= oldest.bytes;
    --count;
    gone.push_back(oldest);
  }
  return gone;
}

bool PutAside(const std::string& state_dir, const RecordingFolder& folder) {
  const std::string aside = state_dir + kAside;
  mkdir(aside.c_str(), 0700);
  const std::string base = aside + '/' + folder.name + '.';
  for (int number = 0; number < 100; ++number) {
    const std::string to = base + std::to_string(number);
    struct stat info {};
    if (lstat(to.c_str(), &info) == 0) continue;  // not yet removed
    return rename(folder.path.c_str(), to.c_str()) == 0;
  }
  return false;
}

void RemoveAside(const std::string& state_dir) {
  std::error_code error;
  fs::remove_all(state_dir + kAside, error);
}

}  // namespace rankscope::exporter
