// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/output/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "exporter/loop/user_path.h"
#include "exporter/loop/user_threads.h"
#include "exporter/processes/root_process.h"

namespace rankscope::collectors {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string ReadDescriptor(const std::string& process, const std::string& number) {
  const exporter::ProcessAccess access;
  return ReadText(process + "/fdinfo/" + number);
}

// A regular file, by what the kernel knows without asking its file system: most processes have a
// pipe or a terminal there.
std::optional<OutputFileId> IdOf(int path_fd) {
  struct statx facts {};
  if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &facts) != 0 ||
      !S_ISREG(facts.stx_mode)) {
    return std::nullopt;
  }
  return OutputFileId{makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino};
}

// A scheduler makes the file some moments before the job's first process.
constexpr int64_t kBeforeStart = 10;
constexpr int64_t kTicksPerSecond = 100;  // USER_HZ, what /proc counts starts in

constexpr int64_t kNsPerSecond = 1'000'000'000;

// Wall time; 0 = its file system does not tell.
int64_t BirthOf(int path_fd) {
  struct statx facts {};
  if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &facts) != 0 ||
      (facts.stx_mask & STATX_BTIME) == 0) {
    return 0;
  }
  return facts.stx_btime.tv_sec * kNsPerSecond + facts.stx_btime.tv_nsec;
}

bool IsYoungerThan(int64_t born_ns, const std::string& proc_root, const ProcessKey& process) {
  if (process.start_ticks <= 0 || born_ns == 0) return false;  // its start is not known
  const std::string stat = ReadText(proc_root + "/stat");
  const size_t at = stat.find("btime ");
  if (at == std::string::npos) return false;
  const int64_t boot = std::strtoll(stat.c_str() + at + 6, nullptr, 10);
  return born_ns / kNsPerSecond >= boot + process.start_ticks / kTicksPerSecond - kBeforeStart;
}

// What root may read here: see OutputReader.
std::string RefusalOfRoot(const std::string& proc_root, const ProcessKey& key,
                          const OutputReader& reader, const struct stat& facts) {
  if (facts.st_uid != 0) return "a process of root writes to another user's file";
  if (reader.all_roots) return {};
  if ((facts.st_mode & S_IROTH) == 0) return "a file of root's that other users may not read";
  if (!IsRootsOwn(proc_root, key))
    return "a file of root's that a user may have made root write to";
  return {};
}

struct Candidate {
  OwnedFd fd;  // O_PATH
  OutputFileId id;
  DescriptorFacts descriptor;
};

// One that the process may write; nothing looked at but what the kernel knows.
std::optional<Candidate> Find(const std::string& proc_root, const ProcessKey& key, int number) {
  const std::string name = std::to_string(number);
  Candidate candidate;
  candidate.fd = exporter::OpenProcessLink(proc_root, key.pid, "fd/" + name);
  if (!candidate.fd) return std::nullopt;
  const auto id = IdOf(candidate.fd.get());
  errno = 0;
  if (!id) return std::nullopt;
  candidate.id = *id;
  const auto descriptor =
      ParseDescriptorFacts(ReadDescriptor(proc_root + '/' + std::to_string(key.pid), name));
  if (!descriptor || !descriptor->writable) return std::nullopt;
  candidate.descriptor = *descriptor;
  return candidate;
}

enum class Elsewhere : uint8_t { kNo, kPipe, kOther };

// Whether what the process writes there goes to what is no regular file.
Elsewhere LeadsElsewhere(const std::string& proc_root, const ProcessKey& key, int number) {
  const OwnedFd fd = exporter::OpenProcessLink(proc_root, key.pid, "fd/" + std::to_string(number));
  struct statx facts {};
  if (!fd || statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &facts) != 0 ||
      S_ISREG(facts.stx_mode))
    return Elsewhere::kNo;
  return S_ISFIFO(facts.stx_mode) ? Elsewhere::kPipe : Elsewhere::kOther;
}

// Opens it for the job; an error says why it is not read.
Result<FoundOutput> Open(const std::string& proc_root, const ProcessKey& key,
                         const OutputReader& reader, const Candidate& candidate,
                         exporter::UserMounts& mounts) {
  if (std::string refusal = mounts.Refusal(candidate.fd.get()); !refusal.empty())
    return Error{std::move(refusal)};
  struct stat facts {};
  if (fstat(candidate.fd.get(), &facts) != 0) return Error{std::strerror(errno)};
  if (reader.who.uid == 0) {
    std::string refusal = RefusalOfRoot(proc_root, key, reader, facts);
    if (!refusal.empty()) return Error{std::move(refusal)};
  }
  OwnedFd file = exporter::OpenLooked(candidate.fd.get());
  if (!file) return Error{std::string("its user cannot read it: ") + std::strerror(errno)};
  FoundOutput output;
  output.file = std::make_shared<OutputFile>(std::move(file));
  // What is appended to is where others may have written before, unless it was made for this job;
  // whoever does not append began at the start.
  output.born_ns = BirthOf(candidate.fd.get());
  output.size = facts.st_size;
  output.written_ns = facts.st_mtim.tv_sec * kNsPerSecond + facts.st_mtim.tv_nsec;
  output.position = candidate.descriptor.position;
  const bool old = candidate.descriptor.append && !IsYoungerThan(output.born_ns, proc_root, key);
  // Where it appends is known once it has written: until then its position is 0.
  const int64_t position = candidate.descriptor.position;
  output.begin = old ? (position > 0 ? position : facts.st_size) : 0;
  return output;
}

}  // namespace

int64_t OutputFile::size() const {
  struct stat facts {};
  return fstat(file_.get(), &facts) == 0 ? static_cast<int64_t>(facts.st_size) : -1;
}

std::string OutputFile::Read(int64_t offset, size_t most) const {
  std::string bytes(most, '\0');
  const ssize_t size = pread(file_.get(), bytes.data(), most, offset);
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

OutputFiles FindOutputFiles(const std::string& proc_root, const ProcessKey& key,
                            const OutputReader& reader, const std::vector<OutputFileId>& known) {
  OutputFiles files;
  exporter::UserMounts mounts(proc_root, key.pid);
  for (const int number : {1, 2}) {
    errno = 0;
    const auto candidate = Find(proc_root, key, number);
    if (!candidate) {
      files.closed = files.closed || errno == EACCES || errno == EPERM;
      const Elsewhere where = LeadsElsewhere(proc_root, key, number);
      files.piped = files.piped || where == Elsewhere::kPipe;
      files.elsewhere = files.elsewhere || where == Elsewhere::kOther;
      continue;
    }
    const bool open =
        std::any_of(files.found.begin(), files.found.end(),
                    [&](const FoundOutput& other) { return other.id == candidate->id; });
    FoundOutput output;
    if (!open && std::find(known.begin(), known.end(), candidate->id) == known.end()) {
      auto opened = Open(proc_root, key, reader, *candidate, mounts);
      if (!opened) {
        files.refusal = opened.error();
        continue;
      }
      output = std::move(*opened);
    }
    output.descriptor = number;
    output.id = candidate->id;
    files.found.push_back(std::move(output));
  }
  return files;
}

}  // namespace rankscope::collectors
