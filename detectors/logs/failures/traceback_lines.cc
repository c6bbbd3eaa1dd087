// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/traceback_lines.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "detectors/logs/failures/incident_text.h"

namespace rankscope::logs {

// The header may follow other text on its line (a progress bar without its newline), but it ends
// the line; in prose and in serialised text it does not.
bool IsHeader(std::string_view text) {
  static constexpr std::string_view kEnding = "Traceback (most recent call last):";
  // torch/distributed/checkpoint/api.py prints what another rank raised behind "(RANK 3)".
  static constexpr std::string_view kOfRank = "Traceback (most recent call last): (RANK ";
  return text.ends_with(kEnding) || (text.ends_with(')') && text.starts_with(kOfRank));
}

// An exception group draws margins: "  | ", "  + Exception Group Traceback", "  +-+---- 1 ----".
std::string_view StripMargin(std::string_view text) {
  const size_t at = text.find_first_not_of(' ');
  if (at == std::string_view::npos || at == 0 || text[at] != '|') return text;
  std::string_view rest = text.substr(at + 1);
  if (rest.starts_with(" ")) rest.remove_prefix(1);
  return rest;
}

std::string_view WithoutLoneBlank(std::string_view text) {
  const bool lone = text.size() > 1 && text[0] == ' ' && text[1] >= 'A' && text[1] <= 'Z' &&
                    !text.starts_with(" File \"");
  return lone ? text.substr(1) : text;
}

bool IsGroupRule(std::string_view text) {
  return TrimLeft(text).starts_with("+-");
}

// Column-zero lines that continue a message: what torch, NCCL and the spawners print below theirs.
bool ContinuesMessage(std::string_view text) {
  static constexpr std::string_view kStarts[] = {
      "nccl",
      "Last error:",
      "Failed to",
      "Cuda failure",
      "CUDA kernel",
      "For debugging",
      "Compile with",
      "Device-side",
      "-- Process",
      "Exception raised from",
      "frame #",
      "\"\"\"",
      "socketProgress",
      "Duplicate GPU",
      "You can suppress",
      "Set TORCH",
      "from user code",
      "Command:",
      "Process name:",
      "Exit code:",
      "found ",
      "could not find expected",
      "expected ",
  };
  // Nearly all lines begin with another letter.
  static constexpr auto kFirst = [] {
    std::array<bool, 256> first{};
    for (const std::string_view start : kStarts) first[static_cast<uint8_t>(start[0])] = true;
    return first;
  }();
  if (text.empty() || !kFirst[static_cast<uint8_t>(text[0])]) return false;
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [text](std::string_view start) { return text.starts_with(start); });
}

// What torch and CUDA print below every message of theirs, and native stacks: nothing of this case.
bool IsBoilerplate(std::string_view text) {
  static constexpr std::string_view kStarts[] = {
      "CUDA kernel errors", "For debugging", "Compile with", "Device-side",
      "Exception raised",   "frame #",       "\"\"\"",       "You can suppress",
      "Set TORCH",          "Last error:",   "-- Process",   "^^^",
  };
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [text](std::string_view start) { return text.starts_with(start); });
}

// Begins with a capital and reads on: a log record begins with a time, a level or a bracket.
bool IsSentence(std::string_view text) {
  constexpr size_t kShortest = 20;
  static constexpr std::string_view kOthers[] = {
      "INFO", "WARN", "ERROR", "DEBUG", "Traceback", "Epoch", "%|", "Exception ignored"};
  const bool begins =
      !text.empty() && ((text[0] >= 'A' && text[0] <= 'Z') ||
                        (text[0] >= '1' && text[0] <= '9' && text.size() > 4 && text[3] == ' '));
  return begins && text.size() >= kShortest && !ContainsAny(text, kOthers) && !IsBoilerplate(text);
}

int32_t RankOfCheckpoint(std::string_view message) {
  const auto rank = IntAfter(message, "CheckpointException ranks:dict_keys([");
  return rank && *rank >= 0 && *rank < (1 << 24) ? static_cast<int32_t>(*rank) : -1;
}

void QuoteCause(const Incident& earlier, Incident& last) {
  for (const Quote& quote : earlier.quotes) {
    if (quote.role != QuoteRole::kCause) continue;
    last.quotes.push_back(quote);
    break;
  }
  AddQuote(last, QuoteRole::kCause, earlier.line, earlier.offset);
}

}  // namespace rankscope::logs
