// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace rankscope::collectors {
namespace {

// linux/magic.h: a file system whose server is the user's own program may keep every reader
// waiting.
constexpr long kFuseMagic = 0x65735546;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Opens for reading what `path_fd`, opened with O_PATH and looked at, stands for: no path is walked
// again, so what was looked at is what is opened.
std::shared_ptr<OutputFile> OpenLooked(int path_fd) {
  const std::string self = "/proc/self/fd/" + std::to_string(path_fd);
  const int fd = open(self.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  return fd < 0 ? nullptr : std::make_shared<OutputFile>(fd);
}

// A scheduler makes the file some moments before the job's first process.
constexpr int64_t kBeforeStart = 10;
constexpr int64_t kTicksPerSecond = 100;  // USER_HZ, what /proc counts starts in

bool IsYoungerThan(int path_fd, const std::string& proc_root, const ProcessKey& process) {
  struct statx facts {};
  if (process.start_ticks <= 0) return false;  // its start is not known
  if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &facts) != 0 ||
      (facts.stx_mask & STATX_BTIME) == 0) {
    return false;
  }
  const std::string stat = ReadText(proc_root + "/stat");
  const size_t at = stat.find("btime ");
  if (at == std::string::npos) return false;
  const int64_t boot = std::strtoll(stat.c_str() + at + 6, nullptr, 10);
  return facts.stx_btime.tv_sec >= boot + process.start_ticks / kTicksPerSecond - kBeforeStart;
}

}  // namespace

OutputFile::~OutputFile() {
  close(fd_);
}

int64_t OutputFile::size() const {
  struct stat facts {};
  return fstat(fd_, &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

std::string OutputFile::Read(int64_t offset, size_t most) const {
  std::string bytes(most, '\0');
  const ssize_t size = pread(fd_, bytes.data(), most, offset);
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

std::optional<DescriptorFacts> ParseDescriptorFacts(const std::string& text) {
  const size_t flags_at = text.find("flags:");
  const size_t position_at = text.find("pos:");
  if (flags_at == std::string::npos || position_at == std::string::npos) return std::nullopt;
  const long flags = std::strtol(text.c_str() + flags_at + 6, nullptr, 8);
  DescriptorFacts facts;
  facts.writable = (flags & O_ACCMODE) != O_RDONLY;
  facts.append = (flags & O_APPEND) != 0;
  facts.position = std::max(0ll, std::strtoll(text.c_str() + position_at + 4, nullptr, 10));
  return facts;
}

std::vector<FoundOutput> FindOutputFiles(const std::string& proc_root, const ProcessKey& key,
                                         uint32_t uid, const std::vector<OutputFileId>& known) {
  std::vector<FoundOutput> found;
  const std::string process = proc_root + "/" + std::to_string(key.pid);
  for (const int number : {1, 2}) {
    const std::string name = std::to_string(number);
    const Descriptor looked(open((process + "/fd/" + name).c_str(), O_PATH | O_CLOEXEC));
    struct stat facts {};
    struct statfs system {};
    if (looked.get() < 0 || fstat(looked.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    const auto descriptor = ParseDescriptorFacts(ReadText(process + "/fdinfo/" + name));
    if (!descriptor || !descriptor->writable) continue;
    if (facts.st_uid != uid && uid != 0) continue;
    FoundOutput output;
    output.descriptor = number;
    output.id = {facts.st_dev, facts.st_ino};
    const bool opened_before =
        std::any_of(found.begin(), found.end(),
                    [&](const FoundOutput& other) { return other.id == output.id; });
    if (!opened_before && std::find(known.begin(), known.end(), output.id) == known.end()) {
      if (fstatfs(looked.get(), &system) != 0 || system.f_type == kFuseMagic) continue;
      output.file = OpenLooked(looked.get());
      if (!output.file) continue;
      // What is appended to is where others may have written before, unless it was made for this
      // job; whoever does not append began at the start.
      const bool old = descriptor->append && !IsYoungerThan(looked.get(), proc_root, key);
      // Where it appends is known once it has written: until then its position is 0.
      const int64_t end = descriptor->position > 0 ? descriptor->position : facts.st_size;
      output.begin = old ? end : 0;
    }
    found.push_back(std::move(output));
  }
  return found;
}

}  // namespace rankscope::collectors
