// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/kept_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

// Field 1015, length-delimited, 8 bytes; then checksum and length, the lowest byte first. It
// differs from the other beginnings in several bits.
constexpr std::string_view kSeal = "\xBA\x3F\x08";
constexpr size_t kSealBytes = kSeal.size() + 8;
// Of a build whose seals had another checksum: field 1000. They are passed over.
constexpr std::string_view kOtherSeal = "\xC2\x3E\x08";
constexpr char kFirstField = '\x0A';  // number 1, length-delimited

constexpr std::string_view kLineSeal = "crc32:";
constexpr std::string_view kOtherLineSeal = "crc32c:";
constexpr std::string_view kAnyLineSeal = "crc32";

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

Error FileError(const std::string& what, const std::string& path) {
  return Error{what + " " + path + ": " + std::strerror(errno) +
               "; check state.dir, its permissions and free space"};
}

void AppendNumber(uint32_t number, std::string& out) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(number >> (8 * i));
}

uint32_t NumberAt(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

std::string Hex(uint32_t number) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string FileNameOf(std::string_view job_id) {
  std::string name;
  for (const char c : job_id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !name.empty());
    if (plain) {
      name += c;
    } else {
      constexpr char kHex[] = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      name += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return name.substr(0, 200);
}

Status ReplaceFile(const std::string& path, std::string_view content) {
  const std::string next = path + ".new";
  OwnedFd fd(open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return FileError("cannot create", next);
  if (!WriteAll(fd.get(), content) || fsync(fd.get()) != 0) {
    const Error failure = FileError("cannot write", next);
    fd.Reset();
    unlink(next.c_str());
    return failure;
  }
  fd.Reset();
  if (rename(next.c_str(), path.c_str()) != 0) return FileError("cannot replace", path);
  return {};
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return FileError("cannot remove", path);
}

Status SyncFolder(const std::string& path) {
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: this file system has nothing to do for it.
  if (!fd || (fsync(fd.get()) != 0 && errno != EINVAL)) return FileError("cannot sync", path);
  return {};
}

std::string SealMessage(std::string_view message) {
  std::string out(kSeal);
  AppendNumber(Checksum(message), out);
  AppendNumber(static_cast<uint32_t>(message.size()), out);
  out += message;
  return out;
}

std::optional<std::string_view> OpenMessage(std::string_view bytes) {
  if (!bytes.empty() && bytes.front() == kFirstField) return bytes;
  if (bytes.starts_with(kOtherSeal) && bytes.size() > kSealBytes) return bytes.substr(kSealBytes);
  if (!bytes.starts_with(kSeal) || bytes.size() < kSealBytes) return std::nullopt;
  const std::string_view message = bytes.substr(kSealBytes);
  if (NumberAt(bytes, kSeal.size() + 4) != message.size()) return std::nullopt;
  if (NumberAt(bytes, kSeal.size()) != Checksum(message)) return std::nullopt;
  return message;
}

std::string SealLine(std::string_view line) {
  std::string out(line);
  out += '\n';
  out += kLineSeal;
  out += Hex(Checksum(line)) + '\n';
  return out;
}

std::optional<std::string_view> OpenLine(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;  // every build ends it
  const std::string_view line = text.substr(0, end);
  const std::string_view seal = text.substr(end + 1);
  if (seal.empty()) {  // of a build without seals, unless the end between them was lost
    if (line.find(kAnyLineSeal) != std::string_view::npos) return std::nullopt;
    return line;
  }
  if (seal.starts_with(kOtherLineSeal) && seal.size() == kOtherLineSeal.size() + 9) return line;
  if (seal != std::string(kLineSeal) + Hex(Checksum(line)) + '\n') return std::nullopt;
  return line;
}

}  // namespace rankscope::exporter
