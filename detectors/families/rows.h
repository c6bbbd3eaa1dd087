// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the families' files give to the table in families.cc.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

Finding EvaluateA1(const features::JobFeatures& f);
Finding EvaluateA2(const features::JobFeatures& f);
Finding EvaluateB1(const features::JobFeatures& f);
Finding EvaluateB2(const features::JobFeatures& f);
Finding EvaluateC1(const features::JobFeatures& f);
Finding EvaluateC2(const features::JobFeatures& f);
Finding EvaluateC3(const features::JobFeatures& f);
Finding EvaluateD1(const features::JobFeatures& f);
Finding EvaluateD2(const features::JobFeatures& f);
Finding EvaluateD3(const features::JobFeatures& f);
Finding EvaluateSaveStorm(const features::JobFeatures& f);  // of D2
Finding EvaluateE1(const features::JobFeatures& f);
Finding EvaluateE2(const features::JobFeatures& f);
Finding EvaluateE3(const features::JobFeatures& f);
Finding EvaluateF1(const features::JobFeatures& f);
Finding EvaluateF2(const features::JobFeatures& f);
Finding EvaluateF3(const features::JobFeatures& f);
Finding EvaluateG1(const features::JobFeatures& f);
Finding EvaluateX1(const features::JobFeatures& f);
Finding EvaluateX2(const features::JobFeatures& f);
Finding EvaluateX3(const features::JobFeatures& f);
Finding EvaluateX5(const features::JobFeatures& f);
Finding EvaluateX10(const features::JobFeatures& f);
Finding EvaluateX12(const features::JobFeatures& f);
Finding EvaluateX14(const features::JobFeatures& f);
Finding EvaluateX19(const features::JobFeatures& f);
Finding EvaluateX20(const features::JobFeatures& f);
Finding EvaluateX15(const features::JobFeatures& f);
Finding EvaluateX16(const features::JobFeatures& f);
Finding EvaluateX21(const features::JobFeatures& f);
Finding EvaluateX24(const features::JobFeatures& f);
Finding EvaluateX26(const features::JobFeatures& f);
Finding EvaluateU0(const features::JobFeatures& f);

RuledOut RuleOutA1(const features::JobFeatures& f);
RuledOut RuleOutA2(const features::JobFeatures& f);
RuledOut RuleOutB1(const features::JobFeatures& f);
RuledOut RuleOutB2(const features::JobFeatures& f);
RuledOut RuleOutB3(const features::JobFeatures& f);
RuledOut RuleOutC1(const features::JobFeatures& f);
RuledOut RuleOutC2(const features::JobFeatures& f);
RuledOut RuleOutC3(const features::JobFeatures& f);
RuledOut RuleOutD1(const features::JobFeatures& f);
RuledOut RuleOutD2(const features::JobFeatures& f);
RuledOut RuleOutD3(const features::JobFeatures& f);
RuledOut RuleOutE1(const features::JobFeatures& f);
RuledOut RuleOutE2(const features::JobFeatures& f);
RuledOut RuleOutE3(const features::JobFeatures& f);
RuledOut RuleOutF1(const features::JobFeatures& f);
RuledOut RuleOutF2(const features::JobFeatures& f);
RuledOut RuleOutF3(const features::JobFeatures& f);
RuledOut RuleOutG1(const features::JobFeatures& f);
RuledOut RuleOutX1(const features::JobFeatures& f);
RuledOut RuleOutX2(const features::JobFeatures& f);
RuledOut RuleOutX3(const features::JobFeatures& f);
RuledOut RuleOutX5(const features::JobFeatures& f);
RuledOut RuleOutX10(const features::JobFeatures& f);
RuledOut RuleOutX12(const features::JobFeatures& f);
RuledOut RuleOutX14(const features::JobFeatures& f);
RuledOut RuleOutX15(const features::JobFeatures& f);
Finding EvaluateB3(const features::JobFeatures& f);
RuledOut RuleOutX16(const features::JobFeatures& f);
RuledOut RuleOutX17(const features::JobFeatures& f);
RuledOut RuleOutX19(const features::JobFeatures& f);
RuledOut RuleOutX20(const features::JobFeatures& f);
RuledOut RuleOutX21(const features::JobFeatures& f);
RuledOut RuleOutX24(const features::JobFeatures& f);
RuledOut RuleOutX26(const features::JobFeatures& f);
RuledOut RuleOutU0(const features::JobFeatures& f);

}  // namespace rankscope::families
