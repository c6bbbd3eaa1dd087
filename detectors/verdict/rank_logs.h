// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What several ranks' own logs say together, beside what a family has found in them: whether all
// ranks are alike or some differ, who failed first, who only followed, and who stopped before the
// others. Adds ranks, localization, sentences and links of the cause chain to a verdict; never
// changes its family, and lowers its confidence where it names a suspect. Pure; loop thread.
#pragma once

#include "detectors/verdict/evidence_writer.h"
#include "detectors/verdict/verdict_builder.h"

namespace rankscope::engine {

// Does nothing for a job without at least two ranks' logs.
void DescribeRankLogs(const VerdictContext& context, EvidenceWriter& writer,
                      proto::Verdict& verdict);

}  // namespace rankscope::engine
