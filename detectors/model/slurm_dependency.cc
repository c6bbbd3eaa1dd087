// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/slurm_dependency.h"

#include <algorithm>

namespace rankscope {
namespace {

constexpr size_t kMost = 8;
constexpr size_t kMostWords = 512;
// Longest first: each is a beginning of another.
constexpr std::string_view kKinds[] = {"afternotok", "aftercorr", "afterany", "afterok", "after"};

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 10 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "123", "123+5", "7_3(unfulfilled)", "7_*"; empty: no job's.
std::string JobOf(std::string_view text) {
  text = text.substr(0, text.find_first_of("+("));
  const size_t sign = text.find('_');
  const std::string_view job = text.substr(0, sign);
  if (!IsNumber(job)) return {};
  if (sign == std::string_view::npos) return std::string(job);
  const std::string_view task = text.substr(sign + 1);
  if (task == "*") return std::string(job);
  return IsNumber(task) ? std::string(text) : std::string();
}

void ReadTerm(std::string_view term, std::vector<SlurmDependency>& found) {
  const size_t colon = term.find(':');
  const auto* const kind = std::find(std::begin(kKinds), std::end(kKinds), term.substr(0, colon));
  if (kind == std::end(kKinds)) return;
  while (term.find(':') != std::string_view::npos) {
    term.remove_prefix(term.find(':') + 1);
    SlurmDependency dependency{std::string(*kind), JobOf(term.substr(0, term.find(':')))};
    if (dependency.job_id.empty() || found.size() >= kMost) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const SlurmDependency& each) {
      return each.job_id == dependency.job_id;
    });
    if (!known) found.push_back(std::move(dependency));
  }
}

}  // namespace

std::vector<SlurmDependency> ReadSlurmDependencies(std::string_view text,
                                                   std::string_view array_task) {
  std::vector<SlurmDependency> found;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(",?"), text.size());
    ReadTerm(text.substr(0, end), found);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const size_t own = array_task.find('_');
  if (own == std::string_view::npos) return found;
  for (SlurmDependency& each : found) {
    if (each.kind == "aftercorr" && each.job_id.find('_') == std::string::npos)
      each.job_id += array_task.substr(own);
  }
  return found;
}

std::vector<std::string> SplitSubmitLine(std::string_view line) {
  constexpr std::string_view kBetween = " \t\n\r'\"`";
  std::vector<std::string> words;
  while (words.size() < kMostWords) {
    line.remove_prefix(std::min(line.find_first_not_of(kBetween), line.size()));
    if (line.empty()) break;
    const size_t end = std::min(line.find_first_of(kBetween), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

std::string DependencyOfSubmitLine(std::string_view line) {
  constexpr std::string_view kLong = "--dependency=";
  const std::vector<std::string> words = SplitSubmitLine(line);
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view value;
    const std::string_view word = words[i];
    if (word.starts_with(kLong)) {
      value = word.substr(kLong.size());
    } else if ((word == "-d" || word == "--dependency") && i + 1 < words.size()) {
      value = words[i + 1];
    } else if (word.starts_with("-d") && !word.starts_with("--")) {
      value = word.substr(2);
    }
    // A script may have options of these names: what they say is no dependency.
    if (!ReadSlurmDependencies(value).empty()) return std::string(value);
  }
  return {};
}

}  // namespace rankscope
