// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/evidence_text.h"

#include <array>

#include "detectors/sentences/render.h"

namespace rankscope::sentences {
namespace {

using features::Evidence;
using features::EvidenceKind;

constexpr std::array kRows = {
#define EVIDENCE(kind, signal, when, text, facts) \
  EvidenceRow{EvidenceKind::kind, signal, when, text, facts},
#include "detectors/sentences/evidence.inc"
#undef EVIDENCE
};

struct Span {
  size_t begin = 0, end = 0;
};

// The rows of a kind stand together.
constexpr std::array kSpans = [] {
  std::array<Span, features::kEvidenceKinds> spans{};
  for (size_t i = 0; i < kRows.size(); ++i) {
    Span& span = spans[static_cast<size_t>(kRows[i].kind)];
    if (span.end == 0) span.begin = i;
    span.end = i + 1;
  }
  return spans;
}();

constexpr bool EveryKindEndsInARowWithoutACondition() {
  for (size_t kind = 0; kind < kSpans.size(); ++kind) {
    const Span span = kSpans[kind];
    if (span.end == 0 || !kRows[span.end - 1].when.text().empty()) return false;
    for (size_t i = span.begin; i < span.end; ++i) {
      if (kRows[i].kind != static_cast<EvidenceKind>(kind)) return false;
      if (kRows[i].signal != kRows[span.begin].signal) return false;
    }
  }
  return true;
}
static_assert(EveryKindEndsInARowWithoutACondition());

}  // namespace

std::span<const EvidenceRow> EvidenceRows() {
  return kRows;
}

const EvidenceRow& FindRow(const Evidence& evidence) {
  const Span span = kSpans[static_cast<size_t>(evidence.kind)];
  for (size_t i = span.begin; i + 1 < span.end; ++i) {
    if (Holds(kRows[i].when, evidence)) return kRows[i];
  }
  return kRows[span.end - 1];
}

std::string_view EvidenceSignal(EvidenceKind kind) {
  return kRows[kSpans[static_cast<size_t>(kind)].begin].signal;
}

std::string EvidenceText(const Evidence& evidence) {
  return Render(FindRow(evidence).text, evidence);
}

std::string_view ObservedText(const Evidence& evidence) {
  switch (evidence.kind) {
    case EvidenceKind::kException:
    case EvidenceKind::kCudaOom:
      return evidence.values.Text(FieldId::kType);
    case EvidenceKind::kRendezvous:
    case EvidenceKind::kSchedulerEnd:
      return evidence.values.Text(FieldId::kSub);
    case EvidenceKind::kCudaError:
      return evidence.values.Text(FieldId::kError);
    default:
      return {};
  }
}

}  // namespace rankscope::sentences
