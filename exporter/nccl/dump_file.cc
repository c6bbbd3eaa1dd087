// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/dump_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace rankscope::collectors {
namespace {

Error Failed(const std::string& path, const std::string& what) {
  return Error{path + ": " + what};
}

}  // namespace

Result<DumpFile> DumpFile::Find(const PathStart& start, const std::string& path, uid_t owner,
                                exporter::UserMounts& mounts) {
  auto found =
      exporter::WalkUserPath(start.root.get(), start.working_directory.get(), path, mounts);
  if (!found && found.error().empty()) return Error{};
  if (!found) return Failed(path, found.error());
  struct stat status {};
  if (fstat(found->get(), &status) != 0) return Failed(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return Failed(path, "not a regular file, not read");
  if (status.st_uid != owner) return Failed(path, "owned by another user, not read");
  if (owner == 0 && (status.st_mode & S_IROTH) == 0)
    return Failed(path, "a file of root's that other users may not read, not read");
  const FileStamp stamp = {status.st_dev, status.st_ino, status.st_size,
                           status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
  return DumpFile(std::move(*found), stamp);
}

Result<std::string> DumpFile::Read(int64_t offset, size_t most) const {
  const OwnedFd file = exporter::OpenLooked(fd_.get());
  if (!file) return Error{std::strerror(errno)};
  std::string bytes;
  constexpr size_t kPiece = 256 * 1024;
  while (bytes.size() < most) {
    const size_t used = bytes.size();
    bytes.resize(std::min(most, used + kPiece));
    const ssize_t n = pread(file.get(), bytes.data() + used, bytes.size() - used,
                            offset + static_cast<int64_t>(used));
    if (n < 0 && errno == EINTR) {
      bytes.resize(used);
      continue;
    }
    bytes.resize(used + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) break;
  }
  return bytes;
}

std::vector<std::string> ListFolder(const PathStart& start, const std::string& path, size_t most,
                                    exporter::UserMounts& mounts) {
  std::vector<std::string> names;
  const auto found =
      exporter::WalkUserPath(start.root.get(), start.working_directory.get(), path + "/.", mounts);
  if (!found) return names;
  OwnedFd folder(openat(found->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(folder ? fdopendir(folder.get()) : nullptr,
                                                      closedir);
  if (!directory) return names;
  folder.Release();
  while (names.size() < most) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace rankscope::collectors
