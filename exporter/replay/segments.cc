// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/segments.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>

namespace rankscope::replay {

namespace {

constexpr std::string_view kPrefix = "bulk-";
constexpr std::string_view kSuffix = ".rec";
constexpr size_t kDigits = 8;

}  // namespace

std::string SegmentName(int64_t number) {
  char name[40];
  std::snprintf(name, sizeof name, "bulk-%08lld.rec", static_cast<long long>(number));
  return name;
}

int64_t SegmentNumber(std::string_view name) {
  if (name.size() != kPrefix.size() + kDigits + kSuffix.size()) return 0;
  if (name.substr(0, kPrefix.size()) != kPrefix || name.substr(kPrefix.size() + kDigits) != kSuffix)
    return 0;
  const char* begin = name.data() + kPrefix.size();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(begin, begin + kDigits, number);
  return error == std::errc() && end == begin + kDigits && number > 0 ? number : 0;
}

std::vector<int64_t> ListSegments(int directory_fd, size_t most_entries) {
  std::vector<int64_t> numbers;
  // Opened anew, because a duplicated descriptor would share the reading position.
  OwnedFd fd(openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return numbers;
  DIR* directory = fdopendir(fd.get());
  if (directory == nullptr) return numbers;
  for (size_t seen = 0; seen < most_entries; ++seen) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    if (const int64_t number = SegmentNumber(entry->d_name)) numbers.push_back(number);
  }
  closedir(directory);
  fd.Release();  // closed by closedir
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

OwnedFd OpenForReading(int directory_fd, const std::string& name) {
  OwnedFd fd(openat(directory_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (fd && (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))) {
    fd.Reset();
    errno = EINVAL;
  }
  return fd;
}

}  // namespace rankscope::replay
