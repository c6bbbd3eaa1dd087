// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/features/printed_silence.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "detectors/windows/printed_span.h"

namespace rankscope::features {
namespace {

// The program's clock may be set to another zone than the node's: zones lie half hours apart (three
// small ones quarters), and none more than 14 hours from where the run was.
bool MayBeAnotherZone(double seconds, double tolerance) {
  constexpr double kStep = 1800, kFarthest = 14 * 3600;
  if (seconds > kFarthest + tolerance) return false;
  const double zones = std::round(seconds / kStep);
  return zones >= 1 && std::abs(seconds - zones * kStep) <= tolerance;
}

// The scheduler's own line: where it dates the end.
const Cause* DatedEnd(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    const logs::Incident& incident = cause.incident();
    const bool dated = incident.kind == logs::IncidentKind::kSchedulerEnd &&
                       cause.candidate->store == proto::STORE_LOG &&
                       incident.line.find(" CANCELLED AT ") != std::string::npos;
    if (dated && cause.role != Cause::Role::kRecovered) return &cause;
  }
  return nullptr;
}

}  // namespace

void DescribePrintedSilence(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  constexpr int64_t kRecords = 10;  // fewer say little of how often they come
  constexpr std::string_view kAt = " CANCELLED AT ";
  const windows::CitedPoint& first = window.loss.first();
  const windows::CitedPoint& last = window.last_progress;
  if (f.timed || f.running || !first.present() || last.index - first.index < kRecords) return;
  const Cause* const end = DatedEnd(f);
  if (end == nullptr) return;
  const std::string_view line = end->incident().line;
  const auto [began, spoke, ended] =
      windows::ReadPrintedSpan(first.line, last.line, line.substr(line.find(kAt) + kAt.size()));
  // The scheduler dates by whole seconds, and by its own clock.
  constexpr int64_t kBehind = 2000;
  if (ended == 0 || began == 0 || spoke <= began || spoke > ended + kBehind) return;
  const double usual =
      static_cast<double>(spoke - began) / 1000.0 / static_cast<double>(last.index - first.index);
  const double silence = static_cast<double>(std::max(ended, spoke) - spoke) / 1000.0;
  constexpr double kRecordsAround = 3, kLeast = 30;
  if (MayBeAnotherZone(silence, std::max(kLeast, kRecordsAround * usual))) return;
  f.silence_seconds = silence;
  f.usual_record_seconds = usual;
  f.p99_record_seconds = kRecordsAround * usual;
  Evidence evidence =
      citer.Quote(EvidenceKind::kSilence, last.stream, last.offset, last.line, last.t);
  evidence.observed = std::round(silence);
  evidence.expected = usual;
  evidence.unit = "s";
  evidence.values.Set(FieldId::kKnown, "printed");
  f.silence_evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
