// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A fact that a sentence of a verdict asserts (detectors/sentences/facts.h). Assertions stand
// beside the document and are not part of it: with them, the end of a run shows which reasons given
// while it ran are not true any more. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "detectors/proto/verdict.pb.h"

namespace rankscope::engine {

struct Assertion {
  enum class Of : uint8_t { kEvidence, kFamily, kQuestion };
  Of of{};
  int32_t number = 0;  // of the evidence, the family or the question in its list of the document
  std::string fact;

  template <class A>
  void Fields(A& a) {
    a(of, number, fact);
  }
};

struct BuiltVerdict {
  proto::Verdict document;
  std::vector<Assertion> assertions;
};

}  // namespace rankscope::engine
