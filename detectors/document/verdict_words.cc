// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/verdict_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <utility>

namespace rankscope {

namespace {

// By number; a number past the end reads as the first word.
std::string_view Pick(std::span<const std::string_view> words, int number) {
  return words[number >= 0 && static_cast<size_t>(number) < words.size()
                   ? static_cast<size_t>(number)
                   : 0];
}

struct TierRow {
  std::string_view words;
  proto::Ground ground;  // of a verdict that nothing limits
};

// By proto::Tier.
constexpr std::array<TierRow, 5> kTiers = {{{"heuristic", proto::GROUND_HEURISTIC},
                                            {"record", proto::GROUND_RECORD},
                                            {"two sources agree", proto::GROUND_TWO_SOURCES},
                                            {"one source", proto::GROUND_ONE_SOURCE},
                                            {"heuristic", proto::GROUND_HEURISTIC}}};

// What makes a verdict less sure than its tier, by proto::Ground.
constexpr std::array<std::string_view, 9> kLimits = {"",
                                                     "",
                                                     "another cause as likely",
                                                     "another cause looks alike",
                                                     "one source decides",
                                                     "one side unseen",
                                                     "partly inferred",
                                                     "",
                                                     ""};

// Whose record proves: the first of what rules the family in that is no text.
std::string RecordWords(const proto::Verdict& verdict) {
  for (const uint32_t id : verdict.isolation().ruled_in_by()) {
    for (const proto::Evidence& evidence : verdict.shows()) {
      if (evidence.id() != id || evidence.store() == proto::STORE_LOG ||
          evidence.store() == proto::STORE_UNSPECIFIED)
        continue;
      return std::string(StoreName(evidence.store())) + " record";
    }
  }
  return "authoritative record";
}

}  // namespace

std::string ConfidenceWords(const proto::Verdict& verdict) {
  const auto tier = static_cast<size_t>(verdict.tier());
  const TierRow& row = kTiers[tier < kTiers.size() ? tier : 0];
  char number[32];
  const auto end = std::to_chars(number, number + sizeof number, verdict.confidence(),
                                 std::chars_format::general, 6);
  std::string text(number, end.ptr);
  text += ", ";
  text += verdict.tier() == proto::TIER_P ? RecordWords(verdict) : std::string(row.words);
  if (verdict.ground() < row.ground) {
    const std::string_view limit = Pick(kLimits, verdict.ground());
    if (!limit.empty()) text.append(", ").append(limit);
  }
  if (verdict.contradicted()) text += ", contradicted by one source";
  return text;
}

std::string_view RemedyWords(std::string_view remedy) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"fix_code", "in the program"},
      {"fix_config", "in the configuration"},
      {"fix_data", "in the data"},
      {"fix_environment", "in the environment"},
      {"rerun", "then rerun"},
      {"drain_node", "and drain the node"},
      {"escalate", "with those who run the cluster"},
      {"wait", "and wait"}};
  for (const auto& [key, words] : kWords) {
    if (key == remedy) return words;
  }
  return {};
}

std::string DispositionWords(const proto::Verdict& verdict) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"completed", "completed"},
      {"failed", "failed"},
      {"cancelled", "was cancelled"},
      {"time_limit", "reached its time limit"},
      {"preempted", "was preempted"},
      {"requeued", "was requeued"},
      {"node_lost", "lost a node"},
      {"by_scheduler", "was ended by the scheduler"},
      {"by_launcher", "was ended by its launcher"},
      {"killed", "was ended by a signal"},
      {"unknown", "ended; how is not known"}};
  // Who ended it; a run that failed may have been cleaned up by somebody.
  constexpr std::string_view kOwnEnds[] = {"completed", "failed", "unknown"};
  const proto::Disposition& how = verdict.disposition();
  std::string text;
  for (const auto& [kind, words] : kWords) {
    if (kind == how.kind()) text = words;
  }
  // The program's own word, and no exit status.
  if (how.kind() == "unknown" && how.reason() == "training finished")
    return "finished its training; how its command ended is not known";
  // It is not known whose end that was.
  if (how.kind() == "completed" && verdict.contradicted())
    return "ended, and its command exited with code 0";
  if (text.empty() || std::ranges::find(kOwnEnds, how.kind()) != std::end(kOwnEnds)) return text;
  const std::string_view before = how.kind() == "killed"        ? " from "
                                  : how.kind() == "by_launcher" ? ", "
                                                                : " by ";
  if (!how.by().empty()) text.append(before).append(how.by());
  if (how.has_uid() && how.by() != "uid " + std::to_string(how.uid()))
    text += " (uid " + std::to_string(how.uid()) + ")";
  return text;
}

std::string_view StoreName(proto::Store store) {
  static constexpr std::string_view kWords[] = {"unknown", "log",  "process", "kernel", "scheduler",
                                                "GPU",     "CUDA", "NCCL",    "host",   "fleet"};
  return Pick(kWords, store);
}

std::string_view LackWords(proto::Store store, proto::Availability availability) {
  const bool absent = availability == proto::AVAILABILITY_UNSPECIFIED;
  if (absent && store == proto::STORE_SCHEDULER) return "not asked yet about its end";
  static constexpr std::string_view kWords[] = {
      "none for this job",          "present",           "the source is down",        "stale",
      "not supported on this node", "permission denied", "not applicable to this job"};
  return Pick(kWords, availability);
}

std::string_view Word(proto::State state) {
  static constexpr std::string_view kWords[] = {"live", "live", "provisional", "final"};
  return Pick(kWords, state);
}

std::string_view Word(proto::Scope scope) {
  static constexpr std::string_view kWords[] = {"job", "job", "node"};
  return Pick(kWords, scope);
}

std::string_view Word(proto::Domain domain) {
  static constexpr std::string_view kWords[] = {"unknown", "workload", "infrastructure",
                                                "scheduler", "unknown"};
  return Pick(kWords, domain);
}

std::string_view Word(proto::Ground ground) {
  static constexpr std::string_view kWords[] = {
      "",           "heuristic",   "even_odds",   "lookalike",
      "one_source", "unseen_side", "two_sources", "two_stores",
      "record"};
  return Pick(kWords, ground);
}

std::string_view Word(proto::Tier tier) {
  static constexpr std::string_view kWords[] = {"W", "P", "C", "S", "W"};
  return Pick(kWords, tier);
}

std::string_view Word(proto::Phase phase) {
  static constexpr std::string_view kWords[] = {"init",       "init",  "rendezvous", "load",
                                                "first_step", "train", "eval",       "save",
                                                "teardown",   "ended"};
  return Pick(kWords, phase);
}

std::string_view Word(proto::Store store) {
  static constexpr std::string_view kWords[] = {"unknown", "log",  "process", "kernel", "scheduler",
                                                "gpu",     "cuda", "nccl",    "host",   "fleet"};
  return Pick(kWords, store);
}

std::string_view Word(proto::RetryOutlook outlook) {
  static constexpr std::string_view kWords[] = {"unknown", "cannot_recover", "may_recover",
                                                "unknown"};
  return Pick(kWords, outlook);
}

std::string_view Word(proto::Cause::Role role) {
  static constexpr std::string_view kWords[] = {"context", "root", "cascade", "context",
                                                "recovered"};
  return Pick(kWords, role);
}

std::string_view StoreWord(proto::Availability availability) {
  static constexpr std::string_view kWords[] = {"absent",      "present", "down",          "stale",
                                                "unsupported", "denied",  "not_applicable"};
  return Pick(kWords, availability);
}

std::string_view SourceWord(proto::Availability availability) {
  static constexpr std::string_view kWords[] = {"unknown",     "up",     "down",          "stale",
                                                "unsupported", "denied", "not_applicable"};
  return Pick(kWords, availability);
}

}  // namespace rankscope
