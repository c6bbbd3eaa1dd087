// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/prefix.h"

#include <array>
#include <cstring>

#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

constexpr int kMaxPrefixes =
    6;  // srun -l over torchrun over accelerate is three; more is not a launcher
constexpr size_t kMaxPrefixName =
    64;  // a host name's limit; keeps a hostile line from being scanned to its end

// The decimal number at i, at most six digits (a rank); moves i behind it. -1 where there is none.
int32_t TakeRank(std::string_view text, size_t& i) {
  const size_t begin = i;
  int32_t value = 0;
  while (i < text.size() && IsDigit(text[i]) && i - begin < 6)
    value = value * 10 + (text[i++] - '0');
  return i == begin ? -1 : value;
}

size_t SkipBlanks(std::string_view text, size_t i) {
  while (i < text.size() && IsBlank(text[i])) ++i;
  return i;
}

// One blank at most goes with a prefix: what follows is the program's indentation, which tracebacks
// need.
std::string_view Behind(std::string_view text, size_t i) {
  if (i < text.size() && text[i] == ' ') ++i;
  return text.substr(i);
}

// "  3: text" (srun -l). A blank or the line's end must follow, or "12:30:01" would lose its hour.
bool StripSrun(Unprefixed& line) {
  size_t i = SkipBlanks(line.text, 0);
  const int32_t rank = TakeRank(line.text, i);
  if (rank < 0 || i >= line.text.size() || line.text[i] != ':') return false;
  if (i + 1 < line.text.size() && line.text[i + 1] != ' ') return false;
  line = {Behind(line.text, i + 1), rank, false};
  return true;
}

// "[default3]:" and "[rank3]:" (torchrun and its log module), "[1,3]<stderr>:" (mpirun: job, global
// rank).
bool StripBracket(Unprefixed& line) {
  const std::string_view text = line.text;
  size_t i = 0;
  bool local = false;
  if (text.starts_with("[default")) {
    i = 8;
    local = true;
  } else if (text.starts_with("[rank")) {
    i = 5;
  } else if (text.size() > 5 && IsDigit(text[1])) {
    i = 1;
    if (TakeRank(text, i) < 0 || i >= text.size() || text[i] != ',') return false;
    const int32_t rank = TakeRank(text, ++i);
    const std::string_view rest = text.substr(i);
    if (rank < 0 || !(rest.starts_with("]<stdout>:") || rest.starts_with("]<stderr>:") ||
                      rest.starts_with("]<stddiag>:"))) {
      return false;
    }
    line = {rest.substr(rest.find(':') + 1), rank, false};
    return true;
  } else {
    return false;
  }
  const int32_t rank = TakeRank(text, i);
  if (rank < 0 || i + 1 >= text.size() || text[i] != ']' || text[i + 1] != ':') return false;
  line = {Behind(text, i + 2), rank, local};
  return true;
}

// "(RayTrainWorker pid=123, ip=10.0.0.4) text"; newer Ray adds "[repeated 3x across cluster]" at
// the end, which stays.
bool StripRay(Unprefixed& line) {
  const std::string_view text = line.text;
  size_t i = 1;
  while (i < text.size() && i < kMaxPrefixName && text[i] != ' ' && text[i] != ')') ++i;
  if (i < 2 || !text.substr(i).starts_with(" pid=")) return false;
  const size_t close = text.substr(0, std::min(text.size(), 3 * kMaxPrefixName)).find(')', i);
  if (close == std::string_view::npos) return false;
  line.text = Behind(text, close + 1);
  return true;
}

// "stderr: " and "stdout: " (accelerate).
bool StripStream(Unprefixed& line) {
  if (!line.text.starts_with("stderr: ") && !line.text.starts_with("stdout: ")) return false;
  line.text.remove_prefix(8);
  return true;
}

// "node12: text" (pdsh). Program words look like it ("step5: loss"), so a host needs letters, then
// a digit at the end, and a name that no training log uses for something else.
bool StripHost(Unprefixed& line) {
  const std::string_view text = line.text;
  size_t i = 0;
  while (i < text.size() && i < kMaxPrefixName &&
         (IsWordByte(text[i]) || text[i] == '-' || text[i] == '.'))
    ++i;
  if (i < 3 || i + 1 >= text.size() || text[i] != ':' || text[i + 1] != ' ' ||
      !IsDigit(text[i - 1])) {
    return false;
  }
  size_t letters = 0;
  while (letters < i && IsLetter(text[letters])) ++letters;
  static constexpr std::array<std::string_view, 8> kHosts = {"worker", "node",    "host", "gpu",
                                                             "ip",     "compute", "cn",   "dgx"};
  const std::string_view word = text.substr(0, letters);
  for (const std::string_view host : kHosts) {
    if (word == host) {
      line.text = text.substr(i + 2);
      return true;
    }
  }
  return false;
}

bool StripOne(Unprefixed& line) {
  if (line.text.size() < 2) return false;
  const char first = line.text.front();
  if (first == '[') return StripBracket(line);
  if (first == '(') return StripRay(line);
  if (IsDigit(first) || IsBlank(first)) return StripSrun(line);
  if (first == 's' && StripStream(line)) return true;
  return IsLetter(first) && StripHost(line);
}

bool IsLevel(std::string_view word) {
  static constexpr std::array<std::string_view, 9> kLevels = {
      "INFO", "DEBUG", "WARNING", "WARN", "ERROR", "CRITICAL", "info", "INFO2", "LOG"};
  for (const std::string_view level : kLevels) {
    if (word == level) return true;
  }
  return false;
}

// Digits with the marks of a date or time between: "2024-01-02", "03:04:05,678", "20240102". One
// mark at least.
bool IsTime(std::string_view word) {
  if (word.size() < 5 || !IsDigit(word.front())) return false;
  int marks = 0;
  for (const char c : word) {
    if (c == ':' || c == '-' || c == '/') {
      ++marks;
    } else if (!IsDigit(c) && c != '.' && c != ',' && c != 'T' && c != 'Z' && c != '+' &&
               c != '_') {
      return false;
    }
  }
  return marks >= 2 || (marks == 1 && word.find(':') != std::string_view::npos && word.size() <= 8);
}

}  // namespace

Unprefixed StripLauncherPrefixes(std::string_view text) {
  Unprefixed line{text};
  for (int i = 0; i < kMaxPrefixes; ++i) {
    Unprefixed next = line;
    if (!StripOne(next)) break;
    if (next.rank < 0) {
      next.rank = line.rank;
      next.local_rank = line.local_rank;
    } else if (next.local_rank && line.rank >= 0 && !line.local_rank) {
      next.rank = line.rank;  // a global rank says more than a local one
      next.local_rank = false;
    }
    line = next;
  }
  return line;
}

std::string_view StripLoggerPrefix(std::string_view text) {
  std::string_view rest = LeftTrimmed(text);
  // A bracket, a time, or a word that begins like a level (or glog's letter for one).
  if (rest.empty() || (!IsDigit(rest[0]) &&
                       std::string_view("[(IDWECLi").find(rest[0]) == std::string_view::npos)) {
    return rest;
  }
  // "[INFO|trainer.py:398] 2021-01-15 10:28:50,371 >> {": everything up to the arrow.
  if (rest.starts_with('[') && IsLetter(rest.size() > 1 ? rest[1] : ' ')) {
    const size_t arrow = rest.substr(0, 200).find(" >> ");
    if (arrow != std::string_view::npos &&
        rest.substr(0, arrow).find(']') != std::string_view::npos) {
      return LeftTrimmed(rest.substr(arrow + 4));
    }
  }
  bool level = false;
  bool time = false;
  for (int part = 0; part < 12; ++part) {
    rest = LeftTrimmed(rest);
    while (!rest.empty() && (level || time) &&
           (rest[0] == '-' || rest[0] == '|' || rest[0] == ':' || rest[0] == '>') &&
           (rest.size() < 2 || rest[1] == ' ' || rest[0] != '-')) {
      rest = LeftTrimmed(rest.substr(1));
    }
    if (rest.starts_with('[') || rest.starts_with('(')) {
      const size_t close = rest.substr(0, 120).find(rest[0] == '[' ? ']' : ')');
      if (close == std::string_view::npos) break;
      const std::string_view inner = Trimmed(rest.substr(1, close - 1));
      const std::string_view first = inner.substr(0, inner.find_first_of(" |,"));
      // "[logging.py:96:log_dist]", "[PID:99566]", "[RANK:0]", "[Rank 0]", "[axolotl.train:63]"
      const bool module =
          (level || time) && (inner.find(':') != std::string_view::npos ||
                              inner.starts_with("Rank ") || inner.starts_with("rank"));
      if (IsTime(first)) {
        time = true;
      } else if (IsLevel(first)) {
        level = true;
      } else if (!module) {
        break;
      }
      rest.remove_prefix(close + 1);
      continue;
    }
    const size_t end = rest.find_first_of(" \t|");
    if (end == std::string_view::npos) break;
    std::string_view word = rest.substr(0, end);
    if (IsTime(word)) {
      time = true;
      rest.remove_prefix(end);
      continue;
    }
    // glog: "I0102 03:04:05.678901 1234 file.py:56] "
    if (word.size() == 5 && (word[0] == 'I' || word[0] == 'W' || word[0] == 'E') &&
        IsDigit(word[1]) && IsDigit(word[4])) {
      const size_t close = rest.substr(0, 160).find("] ");
      if (close == std::string_view::npos) break;
      return LeftTrimmed(rest.substr(close + 2));
    }
    // "INFO:root:step 5": level and logger glued by colons.
    const size_t colon = word.find(':');
    if (colon != std::string_view::npos && IsLevel(word.substr(0, colon))) {
      const size_t second = rest.find(':', colon + 1);
      rest.remove_prefix(second != std::string_view::npos && second - colon < kMaxPrefixName
                             ? second + 1
                             : colon + 1);
      return LeftTrimmed(rest);
    }
    if (IsLevel(word)) {
      level = true;
      rest.remove_prefix(end);
      continue;
    }
    // A module's name counts only between its separators: "- root - ", "| root | ".
    if (level || time) {
      const std::string_view after = LeftTrimmed(rest.substr(end));
      const bool separated =
          after.starts_with("- ") || after.starts_with("| ") || after.starts_with(">> ");
      if (separated && word.find_first_of("=:") == std::string_view::npos && !IsDigit(word[0])) {
        rest = after.substr(1);
        continue;
      }
    }
    break;
  }
  return (level || time) ? LeftTrimmed(rest) : LeftTrimmed(text);
}

std::string_view StripAnsi(std::string_view text, std::string& buffer) {
  buffer.clear();
  size_t i = 0;
  while (i < text.size()) {
    const void* found = std::memchr(text.data() + i, 0x1b, text.size() - i);
    const size_t escape = found == nullptr
                              ? text.size()
                              : static_cast<size_t>(static_cast<const char*>(found) - text.data());
    buffer.append(text, i, escape - i);
    i = escape;
    if (i == text.size()) break;
    ++i;
    if (i < text.size() &&
        text[i] == '[') {  // CSI: parameters 0x30-0x3f, intermediates 0x20-0x2f, final 0x40-0x7e
      ++i;
      while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
      if (i < text.size() && text[i] >= 0x40 && text[i] <= 0x7e) ++i;
    } else if (i < text.size() &&
               text[i] == ']') {  // OSC: up to BEL or ESC \, which must come soon
      const size_t end = text.substr(i, 512).find_first_of(std::string_view("\a\x1b", 2));
      if (end != std::string_view::npos) {
        i += end + 1;
        if (i < text.size() && text[i - 1] == 0x1b && text[i] == '\\') ++i;
      }
    } else if (i < text.size() && text[i] >= 0x20 && text[i] <= 0x7e) {
      ++i;  // two-byte sequence
    }
  }
  return buffer;
}

BehindBar StripBar(std::string_view text) {
  BehindBar result{text, kAbsent, kAbsent};
  for (int bars = 0; bars < 8; ++bars) {
    // tqdm: "| i/n [elapsed<eta, rate]"; n may be missing or "?".
    const size_t percent = result.text.find("%|");
    if (percent == std::string_view::npos) return result;
    const size_t pipe = result.text.find("| ", percent + 2);
    if (pipe == std::string_view::npos) return result;
    const Number position = ReadNumber(result.text.substr(pipe + 2));
    if (!IsIndex(position)) return result;
    size_t i = pipe + 2 + position.text.size();
    double total = kAbsent;
    if (i < result.text.size() && result.text[i] == '/') {
      const Number n = ReadNumber(result.text.substr(i + 1));
      if (!IsIndex(n)) return result;
      total = n.value;
      i += 1 + n.text.size();
    }
    if (!result.text.substr(i).starts_with(" [")) return result;
    const size_t close = result.text.find(']', i);
    if (close == std::string_view::npos) return result;
    result = {result.text.substr(close + 1), position.value, total};
  }
  return result;
}

}  // namespace rankscope::logs
