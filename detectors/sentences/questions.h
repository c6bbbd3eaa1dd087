// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a verdict leaves open, in words, and the command that would settle it. Pure; any thread.
#pragma once

#include "detectors/families/family.h"
#include "detectors/sentences/facts.h"
#include "detectors/sentences/template.h"

namespace rankscope::sentences {

struct QuestionRow {
  families::Question question;
  Template text;
  proto::Store needs;
  Template next_test;  // the cheapest command that would decide; empty = none
  Template next_expects;
  FactList facts;
};
const QuestionRow& FindQuestion(families::Question question);

}  // namespace rankscope::sentences
