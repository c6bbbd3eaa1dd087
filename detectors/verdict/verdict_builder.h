// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A family's finding -> the answer document. Pure; loop thread.
#pragma once

#include <string_view>

#include "detectors/families/family.h"
#include "detectors/features/job_features.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/verdict/assertion.h"
#include "detectors/windows/job_window.h"

namespace rankscope::engine {

struct VerdictContext {
  const windows::JobWindow* job = nullptr;
  const features::JobFeatures* features = nullptr;
  const families::FamilyRow* family = nullptr;
  const families::Finding* finding = nullptr;
  std::string_view node;
  int64_t wall_offset_ns = 0;  // 0 = no wall time known
};

struct Sureness {
  proto::Ground ground = proto::GROUND_UNSPECIFIED;
  double confidence = 0;
};

// The weaker of tier and cap, at most what the generic dialect allows; how often verdicts of this
// ground are right, less what contradicts.
Sureness SurenessOf(const families::FamilyRow& family, const families::Finding& finding,
                    const features::JobFeatures& f);

// Everything but state, revision, detected/updated times, sources and attempts, which are the
// engine's. Warnings never change family or confidence.
BuiltVerdict BuildVerdict(const VerdictContext& context);

}  // namespace rankscope::engine
