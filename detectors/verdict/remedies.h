// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a verdict implies and what to do: a data table keyed by family, sub and exception, whose
// sentences quote the run's own values through {placeholders}. A sentence whose value is missing is
// left out. Pure.
#pragma once

#include <span>
#include <string_view>

#include "detectors/proto/verdict.pb.h"
#include "detectors/sentences/template.h"

namespace rankscope::engine {

struct RemedyRow {
  std::string_view code;
  std::string_view sub;               // "*" = any
  sentences::Template implies;        // cause, in one sentence
  std::string_view remedy;            // closed list, see verdict.proto
  sentences::TemplateList immediate;  // sentences, '|' between them
  sentences::TemplateList structural;
  sentences::TemplateList verify;
  proto::RetryOutlook retry;
};

// The most specific row: (code, sub), else that of a cause that several families can have, ("*",
// sub), else (code, "*").
const RemedyRow& FindRemedy(std::string_view code, std::string_view sub);

std::span<const RemedyRow> Remedies();

}  // namespace rankscope::engine
