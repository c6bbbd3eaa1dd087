// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Collects the evidence of a judgement: turns what windows remember into quotable observations and
// numbers them. Private to features; lives as long as one build of JobFeatures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/features/evidence.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

class Citer {
 public:
  Citer(const windows::JobWindow& job, JobFeatures& f) : job_(job), f_(f) {}

  EvidenceRef Add(Evidence evidence);
  std::string StreamName(uint32_t stream) const;
  Evidence Quote(EvidenceKind kind, uint32_t stream, int64_t offset, std::string_view line,
                 Timestamp t) const;
  Evidence Quote(EvidenceKind kind, const windows::MarkerSeen& seen) const;
  Evidence Quote(EvidenceKind kind, const windows::CitedPoint& point) const;
  // kNoEvidence where the landmark was never met.
  EvidenceRef AddMarker(EvidenceKind kind, const windows::MarkerSeen& seen);
  EvidenceRef AddPoint(EvidenceKind kind, const windows::CitedPoint& point);

 private:
  const windows::JobWindow& job_;
  JobFeatures& f_;
};

}  // namespace rankscope::features
