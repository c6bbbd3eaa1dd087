// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "detectors/model/ascii.h"

namespace rankscope::replay {
namespace {

bool Letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool Separator(char c) {
  return c == '-' || c == '_' || c == '.' || c == '=';
}

// The number that `text` is; -1 where it is none.
int32_t Whole(std::string_view text) {
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr int32_t kMostRanks = 1'000'000;
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && !text.empty() && IsDigit(text.front()) && value < kMostRanks ? value : -1;
}

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// The word of letters that ends at `end`, exclusive.
std::string_view WordBefore(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && Letter(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// "rank_3", "global-rank.3", "local_rank3"; "node_rank_1" numbers nodes.
bool NamedRank(std::string_view text, LogName& name) {
  constexpr std::string_view kRank = "rank";
  for (size_t at = text.find(kRank); at != std::string_view::npos; at = text.find(kRank, at + 1)) {
    if (at > 0 && Letter(text[at - 1])) continue;
    size_t begin = at + kRank.size();
    if (begin < text.size() && Separator(text[begin])) ++begin;
    size_t end = begin;
    while (end < text.size() && IsDigit(text[end])) ++end;
    const int32_t number = Whole(text.substr(begin, end - begin));
    if (number < 0 || (end < text.size() && Letter(text[end]))) continue;
    const size_t before = at > 0 && Separator(text[at - 1]) ? at - 1 : at;
    const std::string_view kind = WordBefore(text, before);
    if (kind == "node" || kind == "group" || kind == "machine" || kind == "host") continue;
    (kind == "local" ? name.local_rank : name.rank) = number;
    return true;
  }
  return false;
}

// RUN/attempt_K/R/stdout.log, and the same with a bare K.
bool TorchrunName(const std::vector<std::string_view>& parts, LogName& name, std::string& run) {
  if (parts.size() < 3) return false;
  const std::string_view file = parts.back();
  if (!file.starts_with("stdout") && !file.starts_with("stderr") && file != "error.json")
    return false;
  std::string_view attempt = parts[parts.size() - 3];
  constexpr std::string_view kAttempt = "attempt_";
  if (attempt.starts_with(kAttempt)) attempt.remove_prefix(kAttempt.size());
  name.restart = Whole(attempt);
  name.local_rank = Whole(parts[parts.size() - 2]);
  if (name.restart < 0 || name.local_rank < 0) {
    name = {};
    return false;
  }
  for (size_t i = 0; i + 3 < parts.size(); ++i) run += std::string(parts[i]) + "/";
  return true;
}

// A name with its runs of digits taken out, and the runs.
struct Masked {
  std::string form;
  std::vector<int32_t> numbers;
  std::vector<bool> may_be_rank;  // by the word before it
};

Masked Mask(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  constexpr std::array<std::string_view, 13> kWords = {
      "log",  "out",    "err",  "stdout",  "stderr", "output", "train",
      "task", "worker", "proc", "process", "slurm",  "job"};
  Masked masked;
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  // One rank's .out and .err are one rank's.
  const bool extension = dot != std::string_view::npos && (slash == path.npos || dot > slash) &&
                         dot + 1 < path.size() && Letter(path[dot + 1]);
  const std::string_view stem = extension ? path.substr(0, dot) : path;
  for (size_t i = 0; i < stem.size();) {
    if (!IsDigit(stem[i])) {
      masked.form.push_back(stem[i++]);
      continue;
    }
    size_t end = i;
    while (end < stem.size() && IsDigit(stem[end])) ++end;
    const size_t before = i > 0 && Separator(stem[i - 1]) ? i - 1 : i;
    const std::string_view word = WordBefore(stem, before);
    const bool after_number = before < i && before > 0 && IsDigit(stem[before - 1]);
    const bool alone = word.empty() && (before == 0 || stem[before - 1] == '/');
    masked.may_be_rank.push_back(
        (slash == path.npos || i > slash) && (end == stem.size() || !Letter(stem[end])) &&
        (after_number || alone || std::find(kWords.begin(), kWords.end(), word) != kWords.end()));
    masked.numbers.push_back(Whole(stem.substr(i, end - i)));
    masked.form.push_back('#');
    i = end;
  }
  return masked;
}

// Ranks from the one number in which files of the same form differ.
void NameByDifference(std::span<const std::string> paths, std::vector<LogName>& names) {
  std::map<std::string, std::vector<std::pair<size_t, Masked>>> forms;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (names[i].rank >= 0 || names[i].local_rank >= 0) continue;
    Masked masked = Mask(paths[i]);
    std::string form = masked.form;
    forms[std::move(form)].emplace_back(i, std::move(masked));
  }
  for (const auto& [form, files] : forms) {
    const size_t count = files.front().second.numbers.size();
    size_t varying = count, different = 0;
    std::set<int32_t> values;
    for (size_t n = 0; n < count; ++n) {
      std::set<int32_t> here;
      for (const auto& [index, masked] : files) here.insert(masked.numbers[n]);
      if (here.size() < 2) continue;
      ++different;
      varying = n;
      values = std::move(here);
    }
    if (different != 1 || !files.front().second.may_be_rank[varying]) continue;
    const int32_t highest = *values.rbegin();
    if (*values.begin() != 0 || highest >= static_cast<int32_t>(4 * values.size())) continue;
    for (const auto& [index, masked] : files) names[index].rank = masked.numbers[varying];
  }
}

}  // namespace

std::vector<LogName> NameLogs(std::span<const std::string> paths) {
  std::vector<LogName> names(paths.size());
  std::set<std::string> runs;
  std::vector<bool> by_torchrun(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::vector<std::string_view> parts = Split(paths[i]);
    if (parts.empty()) continue;
    std::string run;
    if (TorchrunName(parts, names[i], run)) {
      by_torchrun[i] = true;
      runs.insert(std::move(run));
    } else if (!NamedRank(parts.back(), names[i]) && parts.size() >= 2) {
      NamedRank(parts[parts.size() - 2], names[i]);
    }
  }
  // One node's launcher numbers its workers as the job does.
  for (size_t i = 0; i < paths.size(); ++i) {
    if (by_torchrun[i] && runs.size() == 1) names[i].rank = names[i].local_rank;
  }
  NameByDifference(paths, names);
  return names;
}

}  // namespace rankscope::replay
