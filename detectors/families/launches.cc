// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// D1, D2 and D3 as far as calls into CUDA decide them: the host keeps the card waiting, every
// launch waits for the one before, one rank comes late to every step. What happens on the card
// itself is not in these calls.
#include "detectors/families/launches.h"

namespace rankscope::families {

using features::JobFeatures;
using features::LaunchFeatures;

namespace {

constexpr double kWindowSeconds = 60;  // of complete pieces, at least

constexpr double kStillLaunches = 60;  // seconds: else it does not run at all

}  // namespace

bool Launches(const JobFeatures& f) {
  if (f.Primary() != nullptr || (f.exit_known && f.exit_code != 0)) return false;
  return f.store(proto::STORE_CUDA) == Availability::kUp &&
         f.launches.seconds_since_launch < kStillLaunches;
}

bool Readable(const JobFeatures& f) {
  return Launches(f) && f.launches.window_seconds >= kWindowSeconds;
}

Finding Slow(const JobFeatures& f, std::string_view sub) {
  Finding finding;
  finding.matched = true;
  finding.sub = sub;
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;
  finding.symptom = "slow";
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.onset = f.now - Seconds(f.launches.window_seconds);
  return finding;
}

RuledOut NotSlow(const JobFeatures& f, proto::Store needs, Reason by,
                 features::EvidenceRef evidence, FieldValues values) {
  RuledOut out = NotDecidable(needs, by, std::move(values));
  if (evidence != features::kNoEvidence && f.At(evidence) != nullptr) out.evidence = {evidence};
  return out;
}

bool ComesLate(const LaunchFeatures& l, double ratio) {
  constexpr double kIdentity = 0.6;
  constexpr double kZ = 5;
  constexpr int32_t kPieces = 6;
  return l.slow_rank >= 0 && l.slow_pieces >= kPieces && l.slow_ratio >= ratio && l.slow_z >= kZ &&
         l.slow_identity >= kIdentity;
}

}  // namespace rankscope::families
