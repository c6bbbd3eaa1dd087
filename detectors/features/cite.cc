// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/cite.h"

#include <cmath>

namespace rankscope::features {

EvidenceRef Citer::Add(Evidence evidence) {
  f_.evidence.push_back(std::move(evidence));
  return static_cast<EvidenceRef>(f_.evidence.size() - 1);
}

std::string Citer::StreamName(uint32_t stream) const {
  const auto found = job_.streams().find(stream);
  return found == job_.streams().end() ? std::string() : found->second.name;
}

Evidence Citer::Quote(EvidenceKind kind, uint32_t stream, int64_t offset, std::string_view line,
                      Timestamp t) const {
  Evidence evidence;
  evidence.kind = kind;
  evidence.stream = StreamName(stream);
  evidence.offset = offset;
  evidence.line = line;
  evidence.begin = evidence.end = t;
  return evidence;
}

Evidence Citer::Quote(EvidenceKind kind, const windows::MarkerSeen& seen) const {
  Evidence evidence = Quote(kind, seen.stream, seen.offset, seen.line, seen.last);
  if (std::isfinite(seen.number)) evidence.observed = seen.number;
  evidence.values = {{FieldId::kName, seen.name}, {FieldId::kText, seen.text}};
  return evidence;
}

Evidence Citer::Quote(EvidenceKind kind, const windows::CitedPoint& point) const {
  Evidence evidence = Quote(kind, point.stream, point.offset, point.line, point.t);
  evidence.observed = point.value;
  if (std::isfinite(point.step)) {
    evidence.values.Set(FieldId::kStep, std::nearbyint(point.step));
    constexpr std::string_view kCounted[] = {"step", "epoch", "round", "sample"};
    if (f_.step_unit != logs::StepUnit::kSteps)
      evidence.values.Set(FieldId::kCounted, kCounted[static_cast<size_t>(f_.step_unit)]);
  } else {
    evidence.values.Set(FieldId::kRecord, int64_t{point.index + 1});
  }
  return evidence;
}

EvidenceRef Citer::AddMarker(EvidenceKind kind, const windows::MarkerSeen& seen) {
  return seen.count > 0 ? Add(Quote(kind, seen)) : kNoEvidence;
}

EvidenceRef Citer::AddPoint(EvidenceKind kind, const windows::CitedPoint& point) {
  return point.present() ? Add(Quote(kind, point)) : kNoEvidence;
}

}  // namespace rankscope::features
