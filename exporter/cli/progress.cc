// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope progress FILE`: the training records of a log, one row each, numbers as printed; with
// --facts all values of the records; with --events the events of the run.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/reader.h"
#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/quoted_text.h"
#include "exporter/cli/commands.h"

namespace rankscope::cli {
namespace {

constexpr size_t kReadBytes = size_t{1} << 16;  // stays in the second-level cache
// Fewer lines that merely hold an index and a loss prove no training.
constexpr size_t kMinGenericRecords = 3;

enum class Output : uint8_t { kRecords, kFacts, kEvents };

struct Column {
  std::string_view name;
  double logs::Progress::*field;
};

// What --facts prints behind format, step, loss, grad_norm and lr.
constexpr Column kFacts[] = {
    {"total_steps", &logs::Progress::total_steps},
    {"epoch", &logs::Progress::epoch},
    {"step_seconds", &logs::Progress::step_seconds},
    {"elapsed_seconds", &logs::Progress::elapsed_seconds},
    {"batch_size", &logs::Progress::batch_size},
    {"consumed_samples", &logs::Progress::consumed_samples},
    {"consumed_tokens", &logs::Progress::consumed_tokens},
    {"samples_per_second", &logs::Progress::samples_per_second},
    {"tokens_per_second", &logs::Progress::tokens_per_second},
    {"tflops", &logs::Progress::tflops},
    {"mfu", &logs::Progress::mfu},
    {"loss_scale", &logs::Progress::loss_scale},
    {"skipped_iterations", &logs::Progress::skipped_iterations},
    {"nan_iterations", &logs::Progress::nan_iterations},
    {"num_zeros", &logs::Progress::num_zeros},
    {"params_norm", &logs::Progress::params_norm},
    {"reward", &logs::Progress::reward},
    {"reward_std", &logs::Progress::reward_std},
    {"zero_std_share", &logs::Progress::zero_std_share},
    {"kl", &logs::Progress::kl},
};

constexpr std::string_view kHelp =
    R"(The default output is a TSV table with the columns step, loss, grad_norm and lr. Numbers are as
the log prints them; a cell is empty if the record does not print its value.

--facts prints one row per record: the name of its log format, those four columns, and
total_steps, epoch, step_seconds, elapsed_seconds (since training began), batch_size (samples
per step), consumed_samples, consumed_tokens, samples_per_second, tokens_per_second, tflops,
mfu (0 to 1), loss_scale, skipped_iterations, nan_iterations, num_zeros, params_norm, reward,
reward_std, zero_std_share (0 to 1), kl, and loss_key_missing (1 if the record should have a
loss and has none).

--events prints checkpoints, evaluations, the start and the end of training, in order: offset
(in bytes from the start of the log), kind, name (of the rule that recognised the line), step
(if the line has one) and text (a path, a version, the loss of an evaluation, the total number
of steps).
)";

// Indexed by logs::MarkerKind.
constexpr std::string_view kEventKinds[] = {
    "banner",         "train_begin", "train_end",      "save_begin",    "save_end",
    "load_begin",     "loaded",      "no_checkpoint",  "eval",          "rendezvous_begin",
    "rendezvous_end", "restart",     "launcher_begin", "save_failed",   "eval_begin",
    "fact",           "loss_scale",  "partial_load",   "compile_begin", "compile_end",
    "resume_asked",   "fresh_asked", "metric"};
static_assert(std::size(kEventKinds) == logs::kMarkerKinds);

void AppendNumber(std::string& out, double value) {
  if (std::isnan(value)) return;
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

// Of reinforcement learning, without a loss of the whole: printed with --facts only.
bool IsRewardOnly(const logs::Progress& progress) {
  return progress.loss_text.empty() && !std::isnan(progress.reward);
}

// Prints rows as soon as it is known that they count: records of the weaker kinds wait for the end
// of the file, because a stronger dialect may still speak.
class Table {
 public:
  explicit Table(Output output) : output_(output) {
    switch (output_) {
      case Output::kRecords:
        out_ = "step\tloss\tgrad_norm\tlr\n";
        break;
      case Output::kFacts:
        out_ = "format\tstep\tloss\tgrad_norm\tlr";
        for (const Column& column : kFacts) out_.append(1, '\t').append(column.name);
        out_ += "\tloss_key_missing\n";
        break;
      case Output::kEvents:
        out_ = "offset\tkind\tname\tstep\ttext\n";
    }
  }

  void Take(const logs::Progress& progress) {
    if (output_ == Output::kEvents || (output_ == Output::kRecords && IsRewardOnly(progress)))
      return;
    const int strength = logs::DialectStrength(progress);
    if (strength < strength_) return;
    if (strength > strength_) {
      waiting_.clear();
      waiting_records_ = 0;
      strength_ = strength;
    }
    if (strength_ < logs::kStrongestDialect) ++waiting_records_;
    std::string& row = strength_ == logs::kStrongestDialect ? out_ : waiting_;
    if (output_ == Output::kFacts) row.append(progress.format).push_back('\t');
    for (const std::string_view text :
         {progress.step_text, progress.loss_text, progress.grad_norm_text}) {
      row.append(text).push_back('\t');
    }
    row.append(progress.learning_rate_text);
    if (output_ == Output::kFacts) {
      for (const Column& column : kFacts) {
        row.push_back('\t');
        AppendNumber(row, progress.*column.field);
      }
      row += progress.loss_key_missing ? "\t1" : "\t0";
    }
    row.push_back('\n');
    if (out_.size() > kReadBytes) Write();
  }

  void Take(const logs::Marker& marker) {
    using logs::MarkerKind;
    // The Trainer's last dict says that lines beside it were not records.
    if (marker.kind == MarkerKind::kTrainEnd && marker.name == "hf_trainer") StrongDialectSpoke();
    if (output_ != Output::kEvents || marker.kind == MarkerKind::kMetric) return;
    const bool evaluation = marker.kind == MarkerKind::kEval;
    const bool total = marker.kind == MarkerKind::kTrainBegin;
    out_.append(std::to_string(marker.offset)).push_back('\t');
    out_.append(kEventKinds[static_cast<size_t>(marker.kind)]).push_back('\t');
    out_.append(marker.name).push_back('\t');
    if (!evaluation && !total) AppendNumber(out_, marker.number);
    out_.push_back('\t');
    for (const char c : marker.text) out_.push_back(c == '\t' ? ' ' : c);
    if (!std::isnan(marker.number) && (evaluation || total)) {
      out_ += evaluation ? "loss=" : "total_steps=";
      AppendNumber(out_, marker.number);
    }
    out_.push_back('\n');
    if (out_.size() > kReadBytes) Write();
  }

  bool Finish() {
    if (strength_ > 0 || waiting_records_ >= kMinGenericRecords) out_ += waiting_;
    Write();
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  }

 private:
  void StrongDialectSpoke() {
    waiting_.clear();
    waiting_records_ = 0;
    strength_ = logs::kStrongestDialect;
  }

  void Write() {
    std::fwrite(out_.data(), 1, out_.size(), stdout);
    out_.clear();
  }

  Output output_;
  std::string out_;
  std::string waiting_;
  size_t waiting_records_ = 0;
  int strength_ = 0;
};

void TakeAll(std::span<const logs::Record> records, Table& table) {
  for (const logs::Record& record : records) {
    if (const auto* progress = std::get_if<logs::Progress>(&record)) {
      table.Take(*progress);
    } else if (const auto* marker = std::get_if<logs::Marker>(&record)) {
      table.Take(*marker);
    }
  }
}

// Returns 0, or the errno of what failed.
int ReadAll(int fd, Table& table) {
  logs::LineAssembler assembler;
  logs::Reader reader;
  LogLine log_line;
  logs::QuoteMark quoted = logs::QuoteMark::kNone;
  const auto on_line = [&](const logs::AssembledLine& line) {
    const size_t mark = logs::QuoteWidth(line.text, quoted);
    log_line.text = line.text.substr(mark);
    log_line.offset = line.offset + static_cast<int64_t>(mark);
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
    const std::string_view bytes(buffer.data(), static_cast<size_t>(size));
    if (assembler.offset() == 0) quoted = logs::FindQuoteMark(bytes);
    assembler.Feed(bytes, on_line);
  }
  assembler.Flush(LineEnd::kClosed, on_line);
  TakeAll(reader.Flush(), table);
  return 0;
}

}  // namespace

int ProgressCommand(int argc, char** argv) {
  CLI::App app{
      "Print the training records of a log: step, loss, gradient norm and learning rate. Exit "
      "status: 0; 1 if the log cannot be read; 2 for wrong usage.",
      "rankscope progress"};
  std::string file;
  std::string format = "tsv";
  app.add_option("FILE", file, "Log file; - for standard input")->required();
  app.add_option("--format", format, "Output format")->check(CLI::IsMember({"tsv"}));
  bool facts = false;
  bool events = false;
  auto* facts_flag = app.add_flag("--facts", facts, "Print all values of the records");
  app.add_flag("--events", events,
               "Print checkpoints, evaluations, the start and the end of training")
      ->excludes(facts_flag);
  app.footer(std::string(kHelp));
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
  Table table(facts ? Output::kFacts : events ? Output::kEvents : Output::kRecords);
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
