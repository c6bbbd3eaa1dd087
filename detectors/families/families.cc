// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/families/family.h"
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

constexpr Duration kAtOnce{};
constexpr Duration kTwoTicks = Seconds(2);

//               code  prec. incident hold       clear      evaluate            rule_out
constexpr std::array kFamilies = {
    FamilyRow{"X19", 1, true, kAtOnce, kAtOnce, EvaluateX19, RuleOutX19},
    FamilyRow{"F2", 2, true, kAtOnce, kAtOnce, EvaluateF2, RuleOutF2},
    FamilyRow{"F1", 3, true, kAtOnce, kAtOnce, EvaluateF1, RuleOutF1},
    FamilyRow{"X16", 4, true, kAtOnce, kAtOnce, EvaluateX16, RuleOutX16},
    FamilyRow{"B2", 5, true, kAtOnce, kAtOnce, EvaluateB2, RuleOutB2},
    FamilyRow{"X15", 6, true, kAtOnce, kAtOnce, EvaluateX15, RuleOutX15},
    FamilyRow{"A2", 7, true, kAtOnce, kAtOnce, EvaluateA2, RuleOutA2},
    FamilyRow{"B1", 8, true, kAtOnce, kAtOnce, EvaluateB1, RuleOutB1},
    FamilyRow{"X2", 9, true, kAtOnce, kAtOnce, EvaluateX2, RuleOutX2},
    FamilyRow{"X3", 10, true, kAtOnce, kAtOnce, EvaluateX3, RuleOutX3},
    FamilyRow{"X21", 11, true, kAtOnce, kAtOnce, EvaluateX21, RuleOutX21},
    FamilyRow{"E2", 12, true, kAtOnce, kAtOnce, EvaluateE2, RuleOutE2},
    FamilyRow{"X24", 13, true, kAtOnce, kAtOnce, EvaluateX24, RuleOutX24},
    FamilyRow{"X10", 14, true, kAtOnce, kAtOnce, EvaluateX10, RuleOutX10},
    FamilyRow{"A1", 15, true, kAtOnce, kAtOnce, EvaluateA1, RuleOutA1},
    FamilyRow{"X1", 16, true, kAtOnce, kAtOnce, EvaluateX1, RuleOutX1},
    FamilyRow{"X12", 17, true, kAtOnce, kAtOnce, EvaluateX12, RuleOutX12},
    FamilyRow{"C1", 18, true, kAtOnce, kTwoTicks, EvaluateC1, RuleOutC1},
    FamilyRow{"C2", 19, true, kAtOnce, kTwoTicks, EvaluateC2, RuleOutC2},
    FamilyRow{"X5", 20, true, kAtOnce, kAtOnce, EvaluateX5, RuleOutX5},
    FamilyRow{"F3", 21, true, kAtOnce, kAtOnce, EvaluateF3, RuleOutF3},
    FamilyRow{"X20", 22, true, kAtOnce, kAtOnce, EvaluateX20, RuleOutX20},
    FamilyRow{"E1", 30, false, kTwoTicks, kTwoTicks, EvaluateE1, RuleOutE1},
    FamilyRow{"X26", 31, false, kTwoTicks, kTwoTicks, EvaluateX26, RuleOutX26},
    FamilyRow{"E3", 32, false, kAtOnce, kAtOnce, EvaluateE3, RuleOutE3},
    FamilyRow{"C3", 33, false, kAtOnce, kTwoTicks, EvaluateC3, RuleOutC3},
    FamilyRow{"D3", 34, false, Seconds(15), Seconds(10), EvaluateD3, RuleOutD3},
    FamilyRow{"D2", 35, false, kTwoTicks, kTwoTicks, EvaluateD2, RuleOutD2},
    FamilyRow{"B3", 36, false, kTwoTicks, Seconds(10), EvaluateB3, RuleOutB3},
    FamilyRow{"D1", 37, false, kTwoTicks, kTwoTicks, EvaluateD1, RuleOutD1},
    FamilyRow{"X14", 38, false, kAtOnce, kTwoTicks, EvaluateX14, RuleOutX14},
    FamilyRow{"X17", 39, false, kAtOnce, kAtOnce, EvaluateNever, RuleOutX17},
    FamilyRow{"G1", 90, false, kAtOnce, kAtOnce, EvaluateG1, RuleOutG1},
    FamilyRow{"U0", 99, false, kAtOnce, kAtOnce, EvaluateU0, RuleOutU0},
};

}  // namespace

std::span<const FamilyRow> Families() {
  return kFamilies;
}

}  // namespace rankscope::families
