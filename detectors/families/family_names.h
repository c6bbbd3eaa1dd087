// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The closed list of families: code, label value, one phrase. Every verdict and every gauge names
// them all.
#pragma once

#include <span>
#include <string_view>

namespace rankscope::families {

// One row per failure family, in the order of the product's documents.
struct FamilyName {
  std::string_view code;    // A1
  std::string_view family;  // startup_crash
  std::string_view what;    // one phrase
};

std::span<const FamilyName> FamilyNames();

// Empty name when the code is not one of ours.
FamilyName FindFamily(std::string_view code);

}  // namespace rankscope::families
