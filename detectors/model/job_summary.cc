// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/job_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "detectors/model/ascii.h"

namespace rankscope {
namespace {

constexpr std::string_view kMark = "rs1 job:";
constexpr double kMostNumber = 1e18;  // no step, loss or size; sums of such stay finite

bool IsSmall(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsPlain(char c) {
  return IsSmall(c) || IsDigit(c) || c == '/' || c == '.' || c == '_' || c == '+' || c == '-';
}

std::string Encode(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    if (IsPlain(c)) {
      out += c;
    } else if (c >= 'A' && c <= 'Z') {
      out += '^';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'~', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

int Nibble(char c) {
  if (IsDigit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string Decode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '^' && i + 1 < text.size() && IsSmall(text[i + 1])) {
      out += static_cast<char>(text[++i] - 'a' + 'A');
    } else if (text[i] == '~' && i + 2 < text.size() && Nibble(text[i + 1]) >= 0 &&
               Nibble(text[i + 2]) >= 0) {
      out += static_cast<char>(Nibble(text[i + 1]) * 16 + Nibble(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Whole UTF-8 sequences go: what is cut from the end of a text must not begin within one.
std::string_view Tail(std::string_view text, size_t most) {
  text.remove_prefix(text.size() - std::min(text.size(), most));
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0) == 0x80)
    text.remove_prefix(1);
  return text;
}

std::string Name(std::string_view text) {
  return Encode(text.substr(0, JobSummary::kMostWordBytes));
}

std::string Path(std::string_view text) {
  if (text.size() <= JobSummary::kMostPathBytes) return Encode(text);
  return "..." + Encode(Tail(text, JobSummary::kMostPathBytes));
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "-";
  char text[32];
  // Steps and sizes are whole, and must not lose digits.
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.6g", value);
  return text;
}

double ReadNumber(std::string_view text) {
  if (text.empty() || text.size() > 24 || !(IsDigit(text[0]) || text[0] == '-'))
    return JobSummary::kNone;
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || !(std::abs(value) <= kMostNumber))
    return JobSummary::kNone;
  return value;
}

int64_t ReadWhole(std::string_view text) {
  const double value = ReadNumber(text);
  return value >= 0 && value < 1e15 ? static_cast<int64_t>(value) : 0;
}

// Of a name that is longer than we write one, nothing: the line is somebody else's.
std::string ReadName(std::string_view text) {
  std::string name = Decode(text);
  return name.size() <= JobSummary::kMostWordBytes ? name : std::string();
}

// The same of a path; three dots stand before one that was cut.
std::string ReadPath(std::string_view text) {
  std::string path = Decode(text);
  return path.size() <= JobSummary::kMostPathBytes + 3 ? path : std::string();
}

// "a:b:c" as up to three parts.
struct Parts {
  std::string_view part[3];
};
Parts Split(std::string_view text) {
  Parts parts;
  for (std::string_view& part : parts.part) {
    const size_t colon = text.find(':');
    part = text.substr(0, colon);
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return parts;
}

bool IsLineChar(char c) {
  return IsPlain(c) || c == ':' || c == '~' || c == '^' || c == ' ';
}

void ReadWord(std::string_view word, JobSummary& summary) {
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view key = word.substr(0, colon);
  const std::string_view value = word.substr(colon + 1);
  const Parts parts = Split(value);
  if (key == "job") {
    summary.job_id = ReadName(value);
  } else if (key == "task") {
    summary.array_task = ReadName(value);
  } else if (key == "end") {
    summary.end_wall_seconds = ReadWhole(value);
  } else if (key == "try") {
    summary.restarts = static_cast<int32_t>(std::min<int64_t>(ReadWhole(value), 1'000'000));
  } else if (key == "code") {
    summary.code = ReadName(value);
  } else if (key == "node") {
    summary.node = ReadName(value);
  } else if (key == "prog") {
    summary.program = ReadName(value);
  } else if (key == "step") {
    summary.first_step = ReadNumber(parts.part[0]);
    summary.last_step = ReadNumber(parts.part[1]);
  } else if (key == "of") {
    summary.total_steps = ReadNumber(value);
  } else if (key == "loss") {
    summary.first_loss = ReadNumber(parts.part[0]);
    summary.last_loss = ReadNumber(parts.part[1]);
  } else if (key == "mad") {
    summary.loss_mad = ReadNumber(value);
  } else if (key == "records") {
    summary.records = ReadWhole(value);
  } else if (key == "done") {
    summary.finished = value == "1";
  } else if (key == "saves") {
    summary.saves = ReadWhole(value);
  } else if (key == "ckpt" && summary.checkpoints.size() < JobSummary::kMostCheckpoints) {
    summary.checkpoints.push_back(
        {ReadPath(parts.part[0]), ReadNumber(parts.part[1]), ReadNumber(parts.part[2])});
  }
}

}  // namespace

std::string JobSummaryToText(const JobSummary& summary) {
  std::string text = std::string(kMark) + Name(summary.job_id);
  const auto word = [&text](std::string_view key, const std::string& value) {
    text += ' ';
    text += key;
    text += ':';
    text += value;
  };
  const auto name = [&word](std::string_view key, std::string_view value) {
    if (!value.empty()) word(key, Name(value));
  };
  const auto pair = [&word](std::string_view key, double first, double last) {
    if (std::isfinite(first) || std::isfinite(last)) word(key, Number(first) + ":" + Number(last));
  };
  name("task", summary.array_task);
  if (summary.end_wall_seconds > 0) word("end", std::to_string(summary.end_wall_seconds));
  word("try", std::to_string(summary.restarts));
  name("code", summary.code);
  name("node", summary.node);
  name("prog", summary.program);
  pair("step", summary.first_step, summary.last_step);
  if (std::isfinite(summary.total_steps)) word("of", Number(summary.total_steps));
  pair("loss", summary.first_loss, summary.last_loss);
  if (std::isfinite(summary.loss_mad)) word("mad", Number(summary.loss_mad));
  word("records", std::to_string(summary.records));
  if (summary.finished) word("done", "1");
  word("saves", std::to_string(summary.saves));
  for (size_t i = 0; i < std::min(summary.checkpoints.size(), JobSummary::kMostCheckpoints); ++i) {
    const JobSummary::Checkpoint& checkpoint = summary.checkpoints[i];
    const std::string value =
        Path(checkpoint.path) + ":" + Number(checkpoint.bytes) + ":" + Number(checkpoint.step);
    // " ckpt:" before it and " ." behind.
    if (text.size() + value.size() + 8 > JobSummary::kMostBytes) break;
    word("ckpt", value);
  }
  return text + " .";
}

std::string_view FindJobSummary(std::string_view text) {
  const size_t begin = text.find(kMark);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  text = text.substr(0, JobSummary::kMostBytes);
  size_t end = kMark.size();
  while (end < text.size() && IsLineChar(text[end])) ++end;
  text = text.substr(0, end);
  // Behind the full stop begins what others say.
  const size_t stop = text.find(" . ");
  if (stop != std::string_view::npos) text = text.substr(0, stop + 2);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<JobSummary> ReadJobSummary(std::string_view text) {
  std::string_view line = FindJobSummary(text);
  if (line.empty()) return std::nullopt;
  if (line.ends_with(" .")) {
    line.remove_suffix(2);
  } else {
    line = line.substr(0, line.rfind(' '));
  }
  JobSummary summary;
  while (!line.empty()) {
    const size_t space = std::min(line.find(' '), line.size());
    ReadWord(line.substr(0, space), summary);
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  if (summary.job_id.empty()) return std::nullopt;
  return summary;
}

std::string_view LineOfJob(const JobSummaryLines& lines, std::string_view job_id) {
  if (const auto found = lines.find(job_id); found != lines.end()) return found->second;
  if (job_id.find('_') == std::string_view::npos) return {};
  // Few jobs name a task, and there are a few thousand lines at most.
  const std::string word = " task:" + Name(job_id) + " ";
  std::string_view newest;
  int64_t newest_end = -1;
  for (const auto& [number, line] : lines) {
    if (line.find(word) == std::string::npos) continue;
    const std::optional<JobSummary> summary = ReadJobSummary(line);
    if (!summary || summary->array_task != job_id || summary->end_wall_seconds <= newest_end)
      continue;
    newest = line;
    newest_end = summary->end_wall_seconds;
  }
  return newest;
}

JobSummary GoOn(const JobSummary& before, JobSummary now) {
  if (now.array_task.empty()) now.array_task = before.array_task;
  if (now.records == 0) {
    now.records = before.records;
    now.first_step = before.first_step;
    now.last_step = before.last_step;
    now.total_steps = before.total_steps;
    now.first_loss = before.first_loss;
    now.last_loss = before.last_loss;
    now.loss_mad = before.loss_mad;
    now.finished = now.finished || before.finished;
    if (now.program.empty()) now.program = before.program;
  }
  if (now.checkpoints.empty()) {
    now.checkpoints = before.checkpoints;
    now.saves = std::max(now.saves, before.saves);
  }
  return now;
}

std::string ProgramOf(const std::vector<std::string>& argv) {
  const auto base = [](std::string_view path) {
    const size_t slash = path.rfind('/');
    return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
  };
  for (size_t i = 0; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (word.ends_with(".py") && !word.starts_with('-')) return base(word);
    // torchrun is a module, too, and what it runs follows.
    if (word == "-m" && i + 1 < argv.size() && !std::string_view(argv[i + 1]).starts_with("torch."))
      return argv[i + 1];
  }
  return {};
}

}  // namespace rankscope
