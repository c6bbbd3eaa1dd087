// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What each family's file gives to the table in families.cc.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

#define FAMILY(code, name, group, incident, hold, clear, what) \
  namespace name {                                             \
  Finding Evaluate(const features::JobFeatures& f);            \
  RuledOut RuleOut(const features::JobFeatures& f);            \
  }
#include "detectors/families/families.inc"
#undef FAMILY

}  // namespace rankscope::families
