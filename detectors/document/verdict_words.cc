// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/verdict_words.h"

#include <span>

namespace rankscope {

namespace {

// By number; a number past the end reads as the first word.
std::string_view Pick(std::span<const std::string_view> words, int number) {
  return words[number >= 0 && static_cast<size_t>(number) < words.size()
                   ? static_cast<size_t>(number)
                   : 0];
}

}  // namespace

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
