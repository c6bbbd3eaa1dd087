// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Evidence and questions -> sentences. The only place where the engine's findings become prose;
// every number in it comes from the evidence. Pure; loop thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/families/family.h"
#include "detectors/features/evidence.h"

namespace rankscope::engine {

// "rank 1", "ranks 0-3, 7"; empty when nobody is known.
std::string RankList(const std::vector<int32_t>& ranks);

std::string SignalName(int32_t signal);

// Machine name of the thing observed ("loss", "wait_status", "exception").
std::string_view EvidenceSignal(features::EvidenceKind kind);
std::string EvidenceText(const features::Evidence& evidence);
// The observed value where it is not a number.
std::string ObservedText(const features::Evidence& evidence);

struct QuestionRow {
  families::Question question;
  std::string_view text;
  proto::Store needs;
  std::string_view
      next_test;  // the cheapest command that would decide, with {placeholders}; empty = none
  std::string_view next_expects;
};
const QuestionRow& FindQuestion(families::Question question);

// Replaces {name} by the value of that name; a sentence with a name that has no value is dropped
// (empty result).
std::string Fill(std::string_view pattern, const features::Captures& values);

}  // namespace rankscope::engine
