// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// HELP of a metric: a template without fields, and one whole sentence, since other people's user
// interfaces show it alone. Checked by the compiler. For the rows of the catalogue. Any thread.
#pragma once

#include <algorithm>
#include <string_view>

#include "detectors/sentences/template.h"

namespace rankscope::metrics {

class HelpText {
 public:
  constexpr HelpText() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a table is written as its text
  consteval HelpText(const char* text) : template_(text) { Check(template_.text()); }
  constexpr std::string_view text() const { return template_.text(); }

 private:
  static constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

  static constexpr void Check(std::string_view text) {
    using sentences::TemplateIsWrong;
    if (text.find_first_of("{[") != std::string_view::npos) TemplateIsWrong("HELP has no fields");
    if (text.empty() || !IsUpper(text.front())) TemplateIsWrong("HELP begins with a capital");
    if (!text.ends_with('.')) TemplateIsWrong("HELP ends with a period");
    if (text.find(". ") != std::string_view::npos) TemplateIsWrong("HELP is one sentence");
    if (std::count(text.begin(), text.end(), ' ') < 3) TemplateIsWrong("HELP names its subject");
  }

  sentences::Template template_ = "";
};

}  // namespace rankscope::metrics
