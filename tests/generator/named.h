// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Jobs with fixed numbers: the example verdicts of the product's brief, A1 to G1, and the incident
// that the investigation protocol ends with. The seed moves nothing that their text names. Single
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/generator/world.h"

namespace rankscope::generator {

struct NamedRow {
  std::string_view name;
  std::string_view code;  // G1: healthy
  void (*shape)(Plan& plan);
  void (*apply)(World& world, Random& random);
};

std::vector<std::string> NamedJobs();
const NamedRow* FindNamed(std::string_view name);

}  // namespace rankscope::generator
