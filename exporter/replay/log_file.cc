// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "detectors/engine.h"
#include "detectors/logs/assembler.h"
#include "detectors/logs/masked_line.h"
#include "detectors/model/observation.h"
#include "exporter/replay/owned_fd.h"

namespace rankscope::replay {

namespace {

constexpr size_t kBlockBytes = 1 << 16;  // stays in the second-level cache
constexpr size_t kMostFiles = 16'384;    // a job's logs, not a file system
constexpr char kJobId[] = "log";         // what a lone file says of its job
// A file has no times: everything arrives at once, and the end comes after it.
constexpr Timestamp kArrival = {1'000'000'000};
constexpr int kMostTicks = 64;

class LogJudge {
 public:
  void Begin(const std::string& log) {
    RunMark mark;
    mark.what = RunMark::What::kBegin;
    mark.log = log;
    Give(std::move(mark));
  }

  Status Read(const std::string& file, uint32_t stream) {
    const bool standard_input = file == "-";
    OwnedFd opened(standard_input ? -1 : open(file.c_str(), O_RDONLY | O_CLOEXEC));
    const int fd = standard_input ? STDIN_FILENO : opened.get();
    struct stat status = {};
    if (fd < 0 || fstat(fd, &status) != 0) return Error{std::strerror(errno)};
    if (S_ISDIR(status.st_mode)) return Error{"is a directory; --job takes directories"};

    logs::LineAssembler assembler;
    const auto emit = [&](const logs::AssembledLine& line) { GiveLine(line, file, stream); };
    block_.resize(kBlockBytes);
    for (;;) {
      const ssize_t size = read(fd, block_.data(), block_.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Error{std::strerror(errno)};
      if (size == 0) break;
      assembler.Feed({block_.data(), static_cast<size_t>(size)}, emit);
    }
    assembler.Flush(LineEnd::kClosed, emit);
    return {};
  }

  Result<proto::Verdict> End(std::optional<int> exit_code) {
    RunMark end;
    end.what = RunMark::What::kEnd;
    end.status_known = exit_code.has_value();
    end.wait_status = exit_code.value_or(0) << 8;  // as waitpid packs an exit code
    Give(std::move(end));
    RunMark closed;
    closed.what = RunMark::What::kStreamsClosed;
    Give(std::move(closed));
    const JobStatus* job = nullptr;
    for (int i = 1; i <= kMostTicks && (job == nullptr || job->verdict.state() != proto::FINAL);
         ++i) {
      engine_.Tick(kArrival + Seconds(i));
      job = engine_.Find(kJobId);
    }
    if (job == nullptr) return Error{"the engine knows of no run in it"};
    return job->verdict;
  }

 private:
  void GiveLine(const logs::AssembledLine& assembled, const std::string& file, uint32_t stream) {
    LogLine& line = std::get<LogLine>(line_.kind);
    line.stream = stream;
    line.stream_name = file;
    logs::FillLine(assembled, line, masked_);
    line_.t = kArrival;
    line_.seq = ++seq_;
    engine_.Accept(line_);
  }

  void Give(RunMark mark) {
    mark.job_id = kJobId;
    Observation observation;
    observation.t = kArrival;
    observation.seq = ++seq_;
    observation.kind = std::move(mark);
    engine_.Accept(observation);
  }

  static Observation EmptyLine() {
    LogLine line;
    line.job_id = kJobId;
    Observation observation;
    observation.kind = std::move(line);
    return observation;
  }

  engine::Engine engine_;
  Observation line_ = EmptyLine();  // one for all lines: nothing is allocated per line
  std::string block_;
  std::string masked_;
  int64_t seq_ = 0;
};

// Orders by text, with runs of digits compared as numbers.
bool NaturallyBefore(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const auto take = [&](std::string_view& text) {
        const size_t zeros = std::min(text.find_first_not_of('0'), text.size());
        text.remove_prefix(zeros);
        const size_t size =
            static_cast<size_t>(std::find_if_not(text.begin(), text.end(), digit) - text.begin());
        const std::string_view number = text.substr(0, size);
        text.remove_prefix(size);
        return number;
      };
      const std::string_view x = take(a);
      const std::string_view y = take(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

}  // namespace

Result<proto::Verdict> JudgeLogs(std::span<const std::string> files, std::optional<int> exit_code) {
  LogJudge judge;
  judge.Begin(files.size() == 1 ? files.front() : std::string());
  uint32_t stream = 0;
  for (const std::string& file : files) {
    if (const Status read = judge.Read(file, ++stream); !read) {
      return Error{files.size() == 1 ? read.error() : file + ": " + read.error()};
    }
  }
  return judge.End(exit_code);
}

Result<std::vector<std::string>> LogFilesOf(std::span<const std::string> files_and_directories) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : files_and_directories) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> below;
    fs::recursive_directory_iterator it(path, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code gone;
      if (it->is_regular_file(gone) && !gone) below.push_back(it->path().string());
      if (below.size() > kMostFiles) {
        return Error{path + ": holds more than " + std::to_string(kMostFiles) +
                     " files; name the job's own folder"};
      }
    }
    if (error) return Error{path + ": " + error.message()};
    std::sort(below.begin(), below.end(), NaturallyBefore);
    files.insert(files.end(), below.begin(), below.end());
  }
  if (files.empty()) return Error{"no files there"};
  return files;
}

}  // namespace rankscope::replay
