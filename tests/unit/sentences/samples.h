// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Values for the templates of the tables, and goldens of what they then say.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "detectors/sentences/template.h"

namespace rankscope::sentences {

// The fields that a template names, in every alternative.
struct FieldsOf {
  static constexpr bool kEvery = true;

  void Literal(std::string_view) {}
  bool Value(const Placeholder& placeholder) {
    fields.insert(placeholder.field);
    return true;
  }
  bool Holds(std::string_view condition) {
    return EachTerm(condition, [this](const Term& term) {
      if (term.test != Test::kIsNot) fields.insert(term.field);
      return true;
    });
  }
  int Begin() { return 0; }
  void Undo(int) {}

  std::set<FieldId> fields;
};

inline FieldValue Sample(FieldId id) {
  switch (TypeOf(id)) {
    case FieldType::kText:
      return {id, "<" + std::string(FieldName(id)) + ">"};
    case FieldType::kShare:
      return {id, 0.25};
    case FieldType::kBytes:
      return {id, 3.0 * 1024 * 1024 * 1024};
    case FieldType::kHertz:
      return {id, 1.5e9};
    case FieldType::kSeconds:
      return {id, 90.0};
    default:
      return {id, int64_t{2}};
  }
}

// RANKSCOPE_ACCEPT=1 writes the goldens.
inline void Expect(const std::string& name, const std::string& text) {
  const std::string path = RANKSCOPE_SOURCE_DIR "/tests/fixtures/sentences/" + name;
  if (std::getenv("RANKSCOPE_ACCEPT") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(golden.str(), text);
}

}  // namespace rankscope::sentences
