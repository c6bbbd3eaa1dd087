// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finds what a verdict both states and denies. Each sentence of evidence, each reason and each open
// question asserts facts (detectors/sentences/facts.h); exit code and disposition assert some more.
// Single thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/sentences/facts.h"
#include "detectors/verdict/assertion.h"

namespace rankscope::contradictions {

struct Claim {
  std::string sentence;
  sentences::Fact fact;
  // Wall time; 0 = not known. A claim that has no time of its own is of the verdict's.
  int64_t begin_ns = 0, end_ns = 0;
  bool timed = false;
};

// All that a verdict asserts.
std::vector<Claim> ClaimsOf(const engine::BuiltVerdict& verdict);

// "SENTENCE (FACT) | SENTENCE (FACT)" for each two claims that cannot both be true.
std::vector<std::string> Contradictions(const std::vector<Claim>& claims);
std::vector<std::string> Contradictions(const engine::BuiltVerdict& verdict);

}  // namespace rankscope::contradictions
