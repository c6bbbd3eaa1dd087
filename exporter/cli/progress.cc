// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope progress FILE`: the training records of a log, one row each, numbers as printed.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detectors/logs/assembler.h"
#include "detectors/logs/dialects.h"
#include "detectors/logs/reader.h"
#include "exporter/cli/commands.h"

namespace rankscope::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;  // stays in the second-level cache
// Fewer lines that merely hold an index and a loss prove no training.
constexpr size_t kMinGenericRecords = 3;

// Prints rows as soon as it is known that they count: records of the weaker kinds wait for the end
// of the file, because a stronger dialect may still speak.
class Table {
 public:
  Table() { std::fputs("step\tloss\tgrad_norm\tlr\n", stdout); }

  void Take(const logs::Progress& progress) {
    const int strength = logs::DialectStrength(progress);
    if (strength < strength_) return;
    if (strength > strength_) {
      waiting_.clear();
      waiting_records_ = 0;
      strength_ = strength;
    }
    if (strength_ < kStrongest) ++waiting_records_;
    std::string& row = strength_ == kStrongest ? out_ : waiting_;
    for (const std::string_view text :
         {progress.step_text, progress.loss_text, progress.grad_norm_text}) {
      row.append(text).push_back('\t');
    }
    row.append(progress.learning_rate_text).push_back('\n');
    if (out_.size() > kReadBytes) Write();
  }

  // What the Trainer's last dict says of lines beside it.
  void StrongDialectSpoke() {
    waiting_.clear();
    waiting_records_ = 0;
    strength_ = kStrongest;
  }

  bool Finish() {
    if (strength_ > 0 || waiting_records_ >= kMinGenericRecords) out_ += waiting_;
    Write();
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  }

 private:
  static constexpr int kStrongest = 2;

  void Write() {
    std::fwrite(out_.data(), 1, out_.size(), stdout);
    out_.clear();
  }

  std::string out_;
  std::string waiting_;
  size_t waiting_records_ = 0;
  int strength_ = 0;
};

void TakeAll(std::span<const logs::Record> records, Table& table) {
  for (const logs::Record& record : records) {
    if (const auto* progress = std::get_if<logs::Progress>(&record)) {
      table.Take(*progress);
    } else if (const auto* marker = std::get_if<logs::Marker>(&record);
               marker != nullptr && marker->kind == logs::MarkerKind::kTrainEnd &&
               marker->name == "hf_trainer") {
      table.StrongDialectSpoke();
    }
  }
}

// Returns 0, or the errno of what failed.
int ReadAll(int fd, Table& table) {
  logs::LineAssembler assembler;
  logs::Reader reader;
  LogLine log_line;
  const auto on_line = [&](const logs::AssembledLine& line) {
    log_line.text = line.text;
    log_line.offset = line.offset;
    log_line.end = line.end;
    log_line.cut_bytes = line.cut_bytes;
    TakeAll(reader.Feed(log_line, Timestamp{}), table);
  };
  std::vector<char> buffer(kReadBytes);
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size == 0) break;
    if (size < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    assembler.Feed({buffer.data(), static_cast<size_t>(size)}, on_line);
  }
  assembler.Flush(LineEnd::kClosed, on_line);
  TakeAll(reader.Flush(), table);
  return 0;
}

}  // namespace

int ProgressCommand(int argc, char** argv) {
  CLI::App app{
      "Print the training records of a log: step, loss, gradient norm, learning rate, as printed "
      "there.",
      "rankscope progress"};
  std::string file;
  std::string format = "tsv";
  app.add_option("FILE", file, "the log; '-' reads standard input")->required();
  app.add_option("--format", format, "output format")->check(CLI::IsMember({"tsv"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  const bool standard_input = file == "-";
  const int fd = standard_input ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    std::fprintf(stderr, "rankscope progress: %s: %s; name a readable log file\n", file.c_str(),
                 std::strerror(errno));
    return 1;
  }
  Table table;
  const int error = ReadAll(fd, table);
  const bool written = table.Finish();
  if (!standard_input) ::close(fd);
  if (error != 0) {
    std::fprintf(stderr, "rankscope progress: %s: %s; name a readable log file\n", file.c_str(),
                 std::strerror(error));
    return 1;
  }
  if (!written) {
    std::fprintf(stderr, "rankscope progress: standard output: %s\n", std::strerror(errno));
    return 1;
  }
  return 0;
}

}  // namespace rankscope::cli
