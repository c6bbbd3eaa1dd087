// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/dump_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rankscope::collectors {
namespace {

Error Failed(const std::string& path, const char* what) {
  return Error{path + ": " + what};
}

}  // namespace

Result<DumpFile> DumpFile::Find(const std::string& root, const std::string& path, uid_t owner) {
  if (path.empty() || path.size() > 4096 || path.find('\0') != std::string::npos)
    return Failed(path, "no path of a file");
  const int fd = open((root + path).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Error{};
    return Failed(path, std::strerror(errno));
  }
  DumpFile file(fd, {});
  struct stat status {};
  if (fstat(fd, &status) != 0) return Failed(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return Failed(path, "not a regular file, not read");
  if (status.st_uid != owner) return Failed(path, "owned by another user, not read");
  file.stamp_ = {status.st_dev, status.st_ino, status.st_size,
                 status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
  return file;
}

DumpFile::DumpFile(DumpFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), stamp_(other.stamp_) {}

DumpFile::~DumpFile() {
  if (fd_ >= 0) close(fd_);
}

Result<std::string> DumpFile::Read(int64_t offset, size_t most) const {
  const std::string path = "/proc/self/fd/" + std::to_string(fd_);
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return Error{std::strerror(errno)};
  std::string bytes;
  constexpr size_t kPiece = 256 * 1024;
  while (bytes.size() < most) {
    const size_t used = bytes.size();
    bytes.resize(std::min(most, used + kPiece));
    const ssize_t n =
        pread(fd, bytes.data() + used, bytes.size() - used, offset + static_cast<int64_t>(used));
    if (n < 0 && errno == EINTR) {
      bytes.resize(used);
      continue;
    }
    bytes.resize(used + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) break;
  }
  close(fd);
  return bytes;
}

}  // namespace rankscope::collectors
