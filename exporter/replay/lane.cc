// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/lane.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <vector>

#include "detectors/recording/recording.h"
#include "exporter/replay/segments.h"

namespace rankscope::replay {

namespace {

constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT;
constexpr mode_t kMode = 0600;

// Bytes up to the end of the last frame that can be read.
int64_t ReadableBytes(int fd) {
  recording::Decoder decoder;
  std::vector<char> piece(256 * 1024);
  int64_t at = 0;
  while (!decoder.failed()) {
    const ssize_t size = pread(fd, piece.data(), piece.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    at += size;
    decoder.Feed(
        {piece.data(), static_cast<size_t>(size)}, [](const recording::Header&) {},
        [](const Observation&) {});
  }
  return decoder.good_bytes();
}

}  // namespace

bool Lane::Create(int directory_fd, const std::string& name) {
  Close();
  written_ = 0;
  fd_ = OwnedFd(openat(directory_fd, name.c_str(), kFlags | O_EXCL, kMode));
  return fd_ || Failed();
}

bool Lane::Continue(int directory_fd, const std::string& name) {
  Close();
  written_ = 0;
  fd_ = OwnedFd(openat(directory_fd, name.c_str(), kFlags | O_NONBLOCK, kMode));
  struct stat status = {};
  if (!fd_) return Failed();
  if (fstat(fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fd_.Reset();
    errno = EINVAL;
    return Failed();
  }
  if (status.st_size > 0) written_ = ReadableBytes(fd_.get());
  if (ftruncate(fd_.get(), written_) != 0) {
    Failed();
    fd_.Reset();
    return false;
  }
  return true;
}

bool Lane::Reopen(int directory_fd, const std::string& name) {
  fd_ = OwnedFd(openat(directory_fd, name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (!fd_ || fstat(fd_.get(), &status) != 0) return Failed();
  if (S_ISREG(status.st_mode) && status.st_size == written_) return true;
  fd_.Reset();
  errno = EINVAL;
  return Failed();
}

bool Lane::Append(std::string_view frames) {
  if (!open()) return false;
  buffer_.append(frames);
  return buffer_.size() < buffer_bytes_ || Flush();
}

bool Lane::Flush() {
  if (!open()) return false;
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t size = pwrite(fd_.get(), buffer_.data() + done, buffer_.size() - done,
                                written_ + static_cast<int64_t>(done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      if (size == 0) errno = ENOSPC;
      Failed();
      // Half a frame would end the readable part for good. Where even this fails the reader says
      // so.
      if (ftruncate(fd_.get(), written_) != 0) fd_.Reset();
      buffer_.clear();
      return false;
    }
    done += static_cast<size_t>(size);
  }
  written_ += static_cast<int64_t>(done);
  buffer_.clear();
  return true;
}

bool Lane::Sync() {
  if (!Flush()) return false;
  return fsync(fd_.get()) == 0 || Failed();
}

void Lane::Close() {
  if (open()) Flush();
  fd_.Reset();
  std::string().swap(buffer_);  // its room, too
}

bool Lane::Failed() {
  last_error_ = errno;
  ++errors_;
  return false;
}

}  // namespace rankscope::replay
