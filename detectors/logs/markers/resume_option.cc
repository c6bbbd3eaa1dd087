// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a shell or the program prints of its own arguments, as far as it asks to go on from a
// checkpoint: "+ python train.py --resume x", "Namespace(resume='x')", "resume_from_checkpoint: x".
#include "detectors/model/resume_option.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/model/slurm_dependency.h"

namespace rankscope::logs {
namespace {

// Options that name the checkpoint to go on from, as names of a printed configuration. "load"
// stands with its dots elsewhere.
constexpr std::string_view kNames[] = {
    "resume",        "resume_from", "resume_path",      "ckpt_path", "resume_from_checkpoint",
    "continue_from", "resume_ckpt", "resume_checkpoint"};
// A checkpoint as the beginning of another training.
constexpr std::string_view kFreshNames[] = {
    "finetune",     "fine_tune",         "reset_optimizer",    "no_load_optim",
    "weights_only", "load_weights_only", "resume_weights_only"};

// What `set -x` or a launcher prints of a command; empty: the line is none. A training is started
// by Python or by a launcher.
std::string_view CommandOf(std::string_view text) {
  text = LeftTrimmed(text);
  constexpr std::string_view kBefore[] = {"$ ", "cmd = ", "Running command: ", "Command: "};
  std::string_view command;
  if (text.starts_with('+')) {
    const size_t end = text.find_first_not_of('+');
    if (end == std::string_view::npos || text[end] != ' ') return {};
    command = text.substr(end + 1);
  } else {
    for (const std::string_view before : kBefore) {
      const size_t at = text.find(before);
      if (at == std::string_view::npos || (at != 0 && text[at - 1] != ' ')) continue;
      command = text.substr(at + before.size());
      break;
    }
  }
  constexpr std::string_view kStarts[] = {".py", " -m "};
  for (const std::string_view start : kStarts) {
    if (command.find(start) != std::string_view::npos) return command;
  }
  return {};
}

bool ParseCommand(const CleanLine& line, RecordList& out) {
  const std::string_view command = CommandOf(line.text);
  if (command.empty()) return false;
  const std::vector<std::string> argv = SplitSubmitLine(command);
  const std::string flag = ResumeFlagOf(argv);
  // A script that traces its commands starts the next one.
  if (LeftTrimmed(line.text).starts_with('+'))
    out.push_back(MakeMarker(MarkerKind::kLauncherBegin, "command", line));
  // The marker's views are the line's: the flag's words stand in it as they are, but for quotes.
  const size_t at = command.find(flag);
  const bool there = !flag.empty() && at != std::string_view::npos;
  out.push_back(MakeMarker(MarkerKind::kResumeAsked, "command", line,
                           there ? command.substr(at, flag.size()) : std::string_view()));
  return true;
}

// A path, or the name of a file: "True" asks for whatever there is.
bool NamesCheckpoint(std::string_view value) {
  constexpr std::string_view kMarks[] = {"/", ".pt", ".ckpt", ".bin", "checkpoint", "ckpt", "step"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [value](std::string_view mark) {
    return value.find(mark) != std::string_view::npos;
  });
}

// The value of "name=value", "name: value" or "'name': 'value'" whose name begins at `at`.
std::string_view ValueAt(std::string_view text, size_t at, std::string_view name) {
  if (at > 0 && (IsWordByte(text[at - 1]) || text[at - 1] == '.' || text[at - 1] == '-')) return {};
  std::string_view rest = text.substr(at + name.size());
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) rest.remove_prefix(1);
  rest = LeftTrimmed(rest);
  if (rest.empty() || (rest[0] != '=' && rest[0] != ':')) return {};
  rest = LeftTrimmed(rest.substr(1));
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"')) {
    const size_t close = rest.find(rest[0], 1);
    return close == std::string_view::npos ? std::string_view() : rest.substr(1, close - 1);
  }
  return rest.substr(0, rest.find_first_of(" \t,)}"));
}

// Of a list of arguments, an item of it, or a line of a printed configuration.
bool ParseArguments(const CleanLine& line, RecordList& out) {
  constexpr size_t kMaxLine = 16384;  // all arguments of a large program
  const std::string_view text = Trimmed(line.text);
  if (text.size() > kMaxLine) return false;
  const bool list = text.find("Namespace(") != std::string_view::npos ||
                    text.find("Arguments(") != std::string_view::npos ||
                    text.find('{') != std::string_view::npos;
  const auto find = [&](std::string_view name) {
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      if (!list && at > 1) break;  // alone in its line, but for a quote
      const std::string_view value = ValueAt(text, at, name);
      if (!value.empty()) return value;
    }
    return std::string_view();
  };
  for (const std::string_view name : kFreshNames) {
    const std::string_view value = find(name);
    if (value != "True" && value != "true") continue;
    out.push_back(MakeMarker(MarkerKind::kFreshAsked, "arguments", line, value));
    return true;
  }
  for (const std::string_view name : kNames) {
    const std::string_view value = find(name);
    if (value.empty() || SaysNo(value) || !NamesCheckpoint(value)) continue;
    // From the name to the end of the value, with its quotes.
    const auto begin = static_cast<size_t>(value.data() - text.data());
    const size_t from = text.rfind(name, begin);
    const bool quoted = text[begin - 1] == '\'' || text[begin - 1] == '"';
    const size_t end = begin + value.size() + (quoted ? 1 : 0);
    out.push_back(
        MakeMarker(MarkerKind::kResumeAsked, "arguments", line, text.substr(from, end - from)));
    return true;
  }
  return false;
}

constexpr std::string_view kCommands[] = {"+ python", ".py ", " -m ", "cmd = ", "ommand: "};
constexpr std::string_view kArguments[] = {"resume",        "ckpt_path",   "continue_from",
                                           "finetune",      "fine_tune",   "reset_optimizer",
                                           "no_load_optim", "weights_only"};
constexpr std::array kRows = {
    FormatRow{"command", "any", kCommands, ParseCommand, "+ python train.py --resume out/500.pt"},
    FormatRow{"arguments", "any", kArguments, ParseArguments,
              "Namespace(batch_size=8, resume='out/500.pt', seed=1)"},
};

}  // namespace

std::span<const FormatRow> ResumeOptionRows() {
  return kRows;
}

}  // namespace rankscope::logs
