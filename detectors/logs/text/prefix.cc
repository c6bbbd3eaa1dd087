// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/prefix.h"

#include <array>

#include "detectors/logs/record.h"
#include "detectors/logs/text/number.h"
#include "detectors/logs/text/stamp.h"
#include "detectors/model/ascii.h"

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
  if (i + 2 < line.text.size() && !IsLetter(line.text[i + 2]) && DarknetBatch(line.text))
    return false;
  line = {Behind(line.text, i + 1), rank, false};
  return true;
}

// "[1,3]<stderr>:" and "[1,mpirank:3,algo-1]<stderr>:" (mpirun, SageMaker's mpirun): job, global
// rank.
bool StripMpi(Unprefixed& line) {
  constexpr std::string_view kNamed = "mpirank:";
  std::string_view text = line.text.substr(0, 3 * kMaxPrefixName);
  size_t i = 1;
  if (TakeRank(text, i) < 0 || i >= text.size() || text[i] != ',') return false;
  const bool named = text.substr(++i).starts_with(kNamed);
  if (named) i += kNamed.size();
  const int32_t rank = TakeRank(text, i);
  if (rank < 0) return false;
  const size_t close = named ? text.find(']', i) : i;
  if (close == std::string_view::npos) return false;
  for (const std::string_view stream : {"]<stdout>:", "]<stderr>:", "]<stddiag>:"}) {
    if (!text.substr(close).starts_with(stream)) continue;
    line = {line.text.substr(close + stream.size()), rank, false};
    return true;
  }
  return false;
}

// "[default3]:" and "[rank3]:" (torchrun, for whom a role may have another name, and its log
// module).
bool StripBracket(Unprefixed& line) {
  const std::string_view text = line.text;
  if (text.size() > 5 && IsDigit(text[1])) return StripMpi(line);
  size_t i = 0;
  for (const std::string_view name : {"[rank", "[default", "[trainer"}) {
    if (text.starts_with(name)) i = name.size();
  }
  if (i == 0) return false;
  const bool local = text[1] != 'r';
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

// The end of a time as RFC 3339 writes it, with a date, a T and a zone, at the start of `text`; 0
// where there is none. Loggers of Python and slurmctld write no zone.
size_t EndOfZonedTime(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kShape.size()) return 0;
  for (size_t i = 0; i < kShape.size(); ++i) {
    if (kShape[i] == 'd' ? !IsDigit(text[i]) : text[i] != kShape[i]) return 0;
  }
  size_t i = kShape.size();
  if (text[i] == '.') {
    while (++i < text.size() && IsDigit(text[i])) continue;
  }
  if (i < text.size() && text[i] == 'Z') return i + 1;
  constexpr size_t kZone = 6;  // "+01:00"
  const bool zone = i + kZone <= text.size() && (text[i] == '+' || text[i] == '-') &&
                    IsDigit(text[i + 1]) && text[i + 3] == ':';
  return zone ? i + kZone : 0;
}

// "10.0.0.12: text" (pdsh, by the address).
bool StripAddress(Unprefixed& line) {
  const std::string_view text = line.text;
  size_t i = 0;
  for (int part = 0; part < 4; ++part) {
    const size_t begin = i;
    while (i < text.size() && IsDigit(text[i]) && i - begin < 3) ++i;
    if (i == begin || (part < 3 && (i == text.size() || text[i++] != '.'))) return false;
  }
  if (!text.substr(i).starts_with(": ")) return false;
  line.text = text.substr(i + 2);
  return true;
}

// "i.pretrain/0 [default0]:text": a replica of torchx, where a label of torchrun follows.
bool StripReplica(Unprefixed& line) {
  const std::string_view head = line.text.substr(0, kMaxPrefixName + 8);
  size_t i = 0;
  while (i < head.size() && (IsWordByte(head[i]) || head[i] == '-' || head[i] == '.')) ++i;
  if (i >= head.size() || head[i] != '/') return false;
  const size_t slash = i++;
  while (i < head.size() && IsDigit(head[i])) ++i;
  if (i == slash + 1) return false;
  const std::string_view behind = head.substr(i);
  if (!behind.starts_with(" [default") && !behind.starts_with(" [rank") &&
      !behind.starts_with(" [trainer")) {
    return false;
  }
  line.text.remove_prefix(i + 1);
  return true;
}

// "2026-02-03T04:05:06.789012345Z text": what ships a container's lines (docker logs -t, kubectl
// logs --timestamps, a CI's runner). A container runtime's own file has the stream and whether the
// line is whole behind it ("stdout F ").
bool StripShippedTime(Unprefixed& line) {
  const size_t end = EndOfZonedTime(line.text);
  if (end == 0 || (end < line.text.size() && line.text[end] != ' ')) return false;
  line.text = Behind(line.text, end);
  for (const std::string_view stream : {"stdout F ", "stderr F ", "stdout P ", "stderr P "}) {
    if (line.text.starts_with(stream)) line.text.remove_prefix(stream.size());
  }
  return true;
}

// "[pod/trainer-0/pytorch] text" (kubectl logs --prefix), and "[2026-02-03T04:05:06.789Z] 1a2b3c4d
// [rank=3] || text" (Determined's task logs).
bool StripShipped(Unprefixed& line) {
  constexpr size_t kFar = 3 * kMaxPrefixName;
  const std::string_view head = line.text.substr(0, kFar);
  if (head.starts_with("[pod/")) {
    const size_t close = head.find("] ");
    if (close == std::string_view::npos) return false;
    line.text = Behind(line.text, close + 1);
    return true;
  }
  if (EndOfZonedTime(head.substr(1)) == 0) return false;
  const size_t bars = head.find(" || ");
  if (bars == std::string_view::npos) return false;
  const size_t rank = head.substr(0, bars).find("[rank=");
  if (rank != std::string_view::npos) {
    size_t i = rank + 6;
    line.rank = TakeRank(head, i);
  }
  line.text.remove_prefix(bars + 4);
  return true;
}

// "trainer-1  | text": docker compose pads the name by two blanks at least.
bool StripCompose(Unprefixed& line) {
  const std::string_view head = line.text.substr(0, kMaxPrefixName + 4);
  size_t end = 0;
  while (end < head.size() && (IsWordByte(head[end]) || head[end] == '-' || head[end] == '.'))
    ++end;
  if (end < 3 || !IsDigit(head[end - 1]) || !head.substr(end).starts_with("  ")) return false;
  const size_t dash = head.substr(0, end).find_last_not_of("0123456789");
  if (dash == std::string_view::npos || (head[dash] != '-' && head[dash] != '_')) return false;
  const size_t bar = SkipBlanks(head, end);
  if (bar + 1 >= head.size() || head[bar] != '|' || head[bar + 1] != ' ') return false;
  line.text = Behind(line.text, bar + 1);
  return true;
}

// "Feb 03 04:05:06 node7 python3[4123]: text": the journal of a unit or container. What the node's
// own daemons say keeps their name, by which it is known.
bool StripJournal(Unprefixed& line) {
  const size_t date = EndOfSyslogDate(line.text);
  if (date == 0) return false;
  const std::string_view head = line.text.substr(0, date + 2 * kMaxPrefixName);
  const size_t host = head.find(' ', date);
  if (host == std::string_view::npos) return false;
  const size_t open = head.find('[', host);
  const size_t close = head.find("]: ", host);
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  const std::string_view name = head.substr(host + 1, open - host - 1);
  if (name.find(' ') != std::string_view::npos) return false;
  for (const std::string_view daemon :
       {"systemd", "slurm", "nv", "earlyoom", "rasdaemon", "mcelog", "kubelet", "containerd"}) {
    if (name.starts_with(daemon)) return false;
  }
  line.text = line.text.substr(close + 3);
  return true;
}

// A time that names nobody.
bool StripBareStamp(Unprefixed& line) {
  const std::string_view rest = StripStamp(line.text);
  const bool stamped = rest.size() != line.text.size();
  line.text = rest;
  return stamped;
}

bool StripOne(Unprefixed& line) {
  if (line.text.size() < 2) return false;
  const char first = line.text.front();
  if (first == '[') return StripBracket(line) || StripShipped(line);
  if (first == '(') return StripRay(line);
  if (IsDigit(first) && (StripShippedTime(line) || StripAddress(line) || StripBareStamp(line)))
    return true;
  if (IsDigit(first) || IsBlank(first)) return StripSrun(line);
  if (first == 's' && StripStream(line)) return true;
  return IsLetter(first) && (StripHost(line) || StripCompose(line) || StripReplica(line) ||
                             StripJournal(line) || StripBareStamp(line));
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

// "[INFO|trainer.py:398] 2021-01-15 10:28:50,371 >> {": what stands behind the arrow; empty where
// there is none.
std::string_view BehindArrow(std::string_view text) {
  if (!text.starts_with('[') || !IsLetter(text.size() > 1 ? text[1] : ' ')) return {};
  const size_t arrow = text.substr(0, 200).find(" >> ");
  if (arrow == std::string_view::npos || text.substr(0, arrow).find(']') == std::string_view::npos)
    return {};
  return LeftTrimmed(text.substr(arrow + 4));
}

// A module's name between its separators: "- root - ", "| root | ". "[INFO] EVAL | it 100" has
// none: it is an evaluation's line. Before the level a module may be called "test".
bool IsModule(std::string_view word, std::string_view after, bool level) {
  const bool dash = after.starts_with("- ");
  if (!dash && !after.starts_with("| ") && !after.starts_with(">> ")) return false;
  if (word.find_first_of("=:") != std::string_view::npos || IsDigit(word[0])) return false;
  if (dash && !level) return true;
  const std::string name = LowerAscii(word);
  for (const std::string_view other :
       {"eval", "evaluation", "val", "valid", "validation", "test", "dev", "holdout"}) {
    if (name == other) return false;
  }
  return true;
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
  if (const std::string_view behind = BehindArrow(rest); !behind.empty()) return behind;
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
    if (level || time) {
      const std::string_view after = LeftTrimmed(rest.substr(end));
      if (IsModule(word, after, level)) {
        rest = after.substr(1);
        continue;
      }
    }
    break;
  }
  return (level || time) ? LeftTrimmed(rest) : LeftTrimmed(text);
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
