// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/questions.h"

#include <array>

namespace rankscope::sentences {
namespace {

using families::Question;

constexpr std::array kQuestions = {
#define QUESTION(question, text, needs, next_test, next_expects, facts) \
  QuestionRow{Question::question, text, proto::STORE_##needs, next_test, next_expects, facts},
#include "detectors/sentences/questions.inc"
#undef QUESTION
};

}  // namespace

const QuestionRow& FindQuestion(Question question) {
  for (const QuestionRow& row : kQuestions) {
    if (row.question == question) return row;
  }
  return kQuestions.back();
}

}  // namespace rankscope::sentences
