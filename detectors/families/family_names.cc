// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/families/family_names.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace rankscope::families {
namespace {

// A1, A2, ... X26, and U0, which is what is left, at the end.
constexpr bool ComesFirst(const FamilyName& a, const FamilyName& b) {
  const auto place = [](std::string_view code) {
    return std::tuple(code.front() == 'U', code.front(), code.size(), code);
  };
  return place(a.code) < place(b.code);
}

constexpr auto SortedNames() {
  std::array names = {
#define FAMILY(code, name, group, incident, hold, clear, what) FamilyName{#code, #name, what},
#include "detectors/families/families.inc"
#undef FAMILY
  };
  std::sort(names.begin(), names.end(), ComesFirst);
  return names;
}

constexpr auto kNames = SortedNames();

}  // namespace

std::span<const FamilyName> FamilyNames() {
  return kNames;
}

FamilyName FindFamily(std::string_view code) {
  for (const FamilyName& name : kNames) {
    if (name.code == code) return name;
  }
  return {};
}

}  // namespace rankscope::families
