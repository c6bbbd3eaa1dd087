// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/output_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "exporter/loop/owned_fd.h"
#include "exporter/loop/user_path.h"

namespace rankscope::watch {
namespace {

// A FIFO, a terminal or a device must not make anybody wait.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

struct Opened {
  OwnedFd fd{-1};
  int error = 0;
  std::string why;
};

Opened OpenForeign(const std::string& path) {
  const OwnedFd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  exporter::UserMounts mounts("/proc", getpid());
  auto found = exporter::WalkUserPath(root.get(), root.get(), path, mounts);
  if (!found) {
    const bool missing = found.error().empty();
    return {OwnedFd(-1), missing ? ENOENT : EACCES, missing ? strerror(ENOENT) : found.error()};
  }
  struct stat status {};
  if (fstat(found->get(), &status) != 0 || !S_ISREG(status.st_mode))
    return {OwnedFd(-1), EINVAL, "is no regular file"};
  OwnedFd fd = exporter::OpenLooked(found->get());
  const int error = fd ? 0 : errno;
  return {std::move(fd), error, error == 0 ? "" : strerror(error)};
}

Opened OpenOwn(const std::string& path) {
  OwnedFd fd(open(path.c_str(), kFlags));
  const int error = fd ? 0 : errno;
  return {std::move(fd), error, error == 0 ? "" : strerror(error)};
}

void Read(const OutputRequest& request, int fd, OutputPiece& piece) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    piece.error = strerror(errno);
    return;
  }
  if (!S_ISREG(status.st_mode)) {
    piece.error = "is no regular file";
    return;
  }
  piece.device = status.st_dev;
  piece.inode = status.st_ino;
  piece.size = status.st_size;
  piece.written_ns =
      int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + int64_t{status.st_mtim.tv_nsec};
  const bool known = request.inode != 0;
  const bool same = request.device == piece.device && request.inode == piece.inode;
  piece.anew = known && (!same || piece.size < request.offset);
  piece.begin = piece.anew ? 0 : request.offset;
  if (piece.size <= piece.begin) return;
  const auto left = static_cast<uint64_t>(piece.size - piece.begin);
  piece.bytes.resize(left < request.most ? static_cast<size_t>(left) : request.most);
  ssize_t n = 0;
  do {
    n = pread(fd, piece.bytes.data(), piece.bytes.size(), piece.begin);
  } while (n < 0 && errno == EINTR);
  if (n < 0) piece.error = strerror(errno);
  piece.bytes.resize(n < 0 ? 0 : static_cast<size_t>(n));
}

}  // namespace

OutputPiece ReadOutput(const OutputRequest& request) {
  OutputPiece piece;
  piece.missing = true;
  for (const std::string& path : request.paths) {
    Opened opened = request.foreign ? OpenForeign(path) : OpenOwn(path);
    // Of several that cannot be read, the one that is there says why.
    if (!opened.fd && opened.error == ENOENT && !piece.missing) continue;
    piece.path = path;
    piece.error = opened.why;
    piece.missing = opened.error == ENOENT;
    if (!opened.fd) continue;
    Read(request, opened.fd.get(), piece);
    break;
  }
  return piece;
}

}  // namespace rankscope::watch
