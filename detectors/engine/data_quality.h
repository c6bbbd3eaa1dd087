// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a verdict says of the observations that it rests on: whether they are all there were, and
// which are missing. Private to the engine; pure.
#pragma once

#include <vector>

#include "detectors/model/observation.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/windows/job_window.h"

namespace rankscope::engine {

struct DataContext {
  const windows::JobWindow* job = nullptr;
  const std::vector<SourceState>* sources = nullptr;
  double clock_uncertainty_s = 0;
  bool output_unread = false;  // its files were not read to their end
};

// Fills the verdict's data_quality; its state is set already.
void DescribeData(const DataContext& context, proto::Verdict& verdict);

}  // namespace rankscope::engine
