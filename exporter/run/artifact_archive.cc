// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/artifact_archive.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "exporter/run/write_all.h"

namespace rankscope::run {
namespace {

constexpr size_t kBlock = 512;        // of tar
constexpr size_t kPiece = 256 << 10;  // that is read at once
constexpr int64_t kEndBytes = 64;     // of the compressed end, which always fits
constexpr size_t kPlainName = 100;    // of a header; longer ones stand in a record before it
constexpr int kGzip = 15 + 16;        // windowBits of deflateInit2
constexpr char kNoTime[] = "no time was left";
constexpr char kNoRoom[] = "does not fit into the budget";

size_t PaddingOf(int64_t size) {
  return (kBlock - static_cast<size_t>(size) % kBlock) % kBlock;
}

// POSIX.1-1988 (ustar): numbers in octal, and a checksum over the header with blanks in its place.
std::string HeaderOf(std::string_view name, int64_t size, int64_t mtime, char type) {
  std::string header(kBlock, '\0');
  const auto put = [&header](size_t at, std::string_view text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  const auto octal = [&put](size_t at, int digits, int64_t number) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(number));
    put(at, text);
  };
  put(0, name.substr(0, kPlainName));
  octal(100, 7, 0600);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, size);
  octal(136, 11, std::clamp<int64_t>(mtime, 0, (int64_t{1} << 33) - 1));
  put(148, "        ");
  header[156] = type;
  put(257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  octal(148, 6, sum);
  header[154] = '\0';
  return header;
}

// A name that has no room in a header: "LENGTH path=NAME\n", the length with its own digits.
std::string LongName(std::string_view name) {
  const std::string body = " path=" + std::string(name) + "\n";
  size_t length = body.size() + 1;
  while (std::to_string(length).size() + body.size() != length)
    length = std::to_string(length).size() + body.size();
  const std::string record = std::to_string(length) + body;
  return HeaderOf("rankscope-long-name", static_cast<int64_t>(record.size()), 0, 'x') + record +
         std::string(PaddingOf(static_cast<int64_t>(record.size())), '\0');
}

}  // namespace

// One gzip member, written from `offset` on.
class ArtifactArchive::Member {
 public:
  Member(int fd, int64_t room) : fd_(fd), room_(room) {
    open_ = deflateInit2(&stream_, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!open_) why_ = "not enough memory";
  }
  ~Member() {
    if (open_) deflateEnd(&stream_);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // False: see why().
  bool Put(std::string_view bytes, bool last = false) {
    if (!open_ || !why_.empty()) return false;
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      const size_t made = out_.size() - stream_.avail_out;
      size_ += static_cast<int64_t>(made);
      if (size_ > room_) {
        why_ = kNoRoom;
        return false;
      }
      if (const int error = WriteAll(fd_, {out_.data(), made}).error; error != 0) {
        why_ = std::string("the archive cannot be written: ") + std::strerror(error);
        return false;
      }
    } while (stream_.avail_out == 0);
    return true;
  }

  int64_t size() const { return size_; }
  const std::string& why() const { return why_; }

 private:
  int fd_;
  int64_t room_;
  z_stream stream_{};
  bool open_ = false;
  int64_t size_ = 0;
  std::string why_;
  std::array<char, 64 << 10> out_;
};

ArtifactArchive::ArtifactArchive(int fd, int64_t budget, const std::function<bool()>& late)
    : fd_(fd), budget_(budget), late_(late) {}

std::string ArtifactArchive::Add(const FoundFile& file) {
  if (late_()) return kNoTime;
  if (file.size > kMostFile) return "larger than " + std::to_string(kMostFile) + " bytes";
  const OwnedFd fd = OpenFound(file);
  if (!fd) return "has gone, or may not be read";
  const auto member = std::make_unique<Member>(fd_, budget_ - size_ - kEndBytes);
  if (file.name.size() > kPlainName) member->Put(LongName(file.name));
  member->Put(HeaderOf(file.name, file.size, file.mtime_ns / 1'000'000'000, '0'));
  std::vector<char> piece(kPiece);
  int64_t rest = file.size;
  std::string why;
  while (rest > 0 && member->why().empty() && why.empty()) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(rest, static_cast<int64_t>(kPiece)));
    const ssize_t size = read(fd.get(), piece.data(), wanted);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      why = size == 0 ? "became shorter while it was read" : std::strerror(errno);
    } else if (late_()) {
      why = kNoTime;
    } else {
      member->Put({piece.data(), static_cast<size_t>(size)});
      rest -= size;
    }
  }
  if (why.empty()) member->Put(std::string(PaddingOf(file.size), '\0'), true);
  if (why.empty()) why = member->why();
  if (why.empty()) {
    size_ += member->size();
  } else if (ftruncate(fd_, size_) != 0 || lseek(fd_, size_, SEEK_SET) != size_) {
    budget_ = 0;  // nothing can be added any more
  }
  return why;
}

bool ArtifactArchive::Finish() {
  Member end(fd_, kEndBytes * 16);
  return end.Put(std::string(2 * kBlock, '\0'), true);
}

}  // namespace rankscope::run
