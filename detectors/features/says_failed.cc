// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/says_failed.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

namespace rankscope::features {
namespace {

bool HasAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool IsLetter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// A word of its own, in capitals.
bool HasAnyUpperWord(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    const size_t at = text.find(word);
    if (at == std::string_view::npos) return false;
    const size_t end = at + word.size();
    return (at == 0 || !IsLetter(text[at - 1])) && (end == text.size() || !IsLetter(text[end]));
  });
}

// "srun: error: ...", "mpirun: error: ...", "error: ...": a command that tells of an error. A
// metric has a number behind its colon, or a name of several words before it.
bool IsCommandsError(std::string_view lower) {
  const size_t at = lower.find("error: ");
  if (at == std::string_view::npos) return false;
  const std::string_view head = lower.substr(0, at);
  const std::string_view told = Trimmed(lower.substr(at + 7));
  if (told.empty() || !IsLetter(told.front())) return false;
  if (head.empty()) return true;
  return head.ends_with(": ") && head.find(' ') == head.size() - 1;
}

// What bash prints of a child that a signal ended: "SCRIPT: line 9: 4077 Killed    python x.py".
// Its translations turn "line 9" around and set blanks before colons; the words for the signal are
// the C library's, in the user's language, with blanks up to the column of the command (jobs.c).
bool IsShellsReport(std::string_view text) {
  const size_t first = text.find(':');
  if (first == std::string_view::npos) return false;
  const size_t second = text.find(':', first + 1);
  if (second == std::string_view::npos || second - first > 32) return false;
  if (Trimmed(text.substr(0, first)).find(' ') != std::string_view::npos) return false;
  // A word and a number, in either order.
  const std::string_view place = Trimmed(text.substr(first + 1, second - first - 1));
  const size_t blank = place.find(' ');
  if (blank == std::string_view::npos) return false;
  const auto is_number = [](std::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), IsDigit);
  };
  const std::string_view other = Trimmed(place.substr(blank));
  if (is_number(place.substr(0, blank)) == is_number(other)) return false;
  if (other.find(' ') != std::string_view::npos) return false;
  std::string_view rest = Trimmed(text.substr(second + 1));
  const size_t pid = rest.find(' ');
  if (pid == std::string_view::npos || pid > 7 || !is_number(rest.substr(0, pid))) return false;
  rest = Trimmed(rest.substr(pid));
  const bool column = rest.find("  ") != std::string_view::npos ||
                      rest.find("(core dumped)") != std::string_view::npos;
  return column && !rest.empty() && !IsDigit(rest.front());
}

// glibc's words for the signals that end a process: the whole line of a shell that was given the
// command with -c, and of make and time(1).
bool IsSignalsName(std::string_view text) {
  constexpr std::array<std::string_view, 20> kNames = {"Hangup",
                                                       "Quit",
                                                       "Illegal instruction",
                                                       "Trace/breakpoint trap",
                                                       "Aborted",
                                                       "Aborted!",
                                                       "Bus error",
                                                       "Floating point exception",
                                                       "Killed",
                                                       "User defined signal 1",
                                                       "User defined signal 2",
                                                       "Segmentation fault",
                                                       "Broken pipe",
                                                       "Alarm clock",
                                                       "Terminated",
                                                       "CPU time limit exceeded",
                                                       "File size limit exceeded",
                                                       "Virtual timer expired",
                                                       "Bad system call",
                                                       "^C"};
  const size_t dumped = text.find(" (core dumped)");
  const std::string_view name = Trimmed(text.substr(0, dumped));
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// "train-1 exited with code 137", "exit status 9", in whatever runs commands; a code of 0 is none.
bool TellsOfACode(std::string_view lower) {
  for (const std::string_view words :
       {"exited with code ", "exited with exit code ", "exited with status ",
        "exit code: ", "exit code ", "exit status ",
        "exit status: ", "exitcode: ", "return code: ", "returned non-zero exit status "}) {
    const size_t at = lower.find(words);
    if (at == std::string_view::npos) continue;
    const char* const begin = lower.data() + at + words.size();
    int code = 0;
    const auto [end, error] = std::from_chars(begin, lower.data() + lower.size(), code);
    if (error == std::errc() && code != 0) return true;
  }
  return false;
}

// What is tried again or ignored is no end.
bool GoesOn(std::string_view lower) {
  return HasAny(lower, {"ignor", "retry", "again", "skipp", "continu", "warn", "0 error"});
}

}  // namespace

bool SaysFailed(std::string_view text, std::string_view lower) {
  constexpr size_t kHead = 80;  // a logger's prefix and its name
  if (IsShellsReport(text) || IsSignalsName(text)) return true;
  if (GoesOn(lower)) return false;
  if (lower.starts_with("panic: ") || lower.starts_with("fatal: ")) return true;
  if (HasAnyUpperWord(text.substr(0, kHead), {"ERROR", "FATAL", "CRITICAL"})) return true;
  return IsCommandsError(lower) || TellsOfACode(lower);
}

bool EndsAbruptly(std::string_view text, std::string_view lower) {
  // A bar that Ctrl-C cut.
  if (Trimmed(text).ends_with("^C")) return true;
  // Open MPI's openib, whose words hold one of those that a retry has.
  if (HasAny(lower, {"retry count between two mpi processes has been exceeded"})) return true;
  if (GoesOn(lower) || HasAny(lower, {"early stop", "patience", " not "})) return false;
  return HasAny(lower,
                {"core dumped", "timed out", "type=timeout", "exceeded limit", "limit exceeded",
                 "preempted", "evicted", "aborting", "terminating the process", "terminated by",
                 "was killed", "shutting down the node", "watchdog hang"});
}

}  // namespace rankscope::features
