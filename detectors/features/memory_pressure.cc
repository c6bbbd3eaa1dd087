// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/memory_pressure.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "detectors/features/calls.h"

namespace rankscope::features {
namespace {

using windows::RankWindow;

// Of ten-second means: over the last minute, half of it at least.
constexpr size_t kMeansMax = 7;
constexpr size_t kMeansMin = 4;
constexpr double kMeanSeconds = 10;
// A disk takes 0.1 to 10 ms for a page: 10 a second are the least that a rank may notice.
constexpr double kFaultsMin = 10;
constexpr double kGrownMin = 64.0 * 1024 * 1024;
// A rank is polled once a second; the numbers of one that has ended are its last.
constexpr Duration kHeardWithin = Seconds(30);

struct Pressure {
  int32_t rank = -1;
  double swapped = 0, grown = 0, faults = 0, seconds = 0;
  Timestamp last;
};

std::optional<Pressure> PressureOf(const RankWindow& rank) {
  const std::vector<float> swapped = rank.rings.TenSecondMeans(SignalId::kSwappedBytes);
  const std::vector<float> faults = rank.rings.TenSecondMeans(SignalId::kMajorFaults);
  const size_t means = std::min({swapped.size(), faults.size(), kMeansMax});
  if (means < kMeansMin) return std::nullopt;
  const auto grown = [means](const std::vector<float>& of) {
    return double{of.back()} - double{of[of.size() - means]};
  };
  Pressure pressure;
  pressure.rank = rank.rank;
  pressure.seconds = kMeanSeconds * static_cast<double>(means - 1);
  pressure.swapped = rank.rings.Last(SignalId::kSwappedBytes);
  pressure.grown = grown(swapped);
  pressure.faults = grown(faults) / pressure.seconds;
  pressure.last = rank.rings.LastTime(SignalId::kSwappedBytes);
  const bool still = swapped.back() > swapped[swapped.size() - 3];
  if (!still || pressure.grown < kGrownMin || pressure.faults < kFaultsMin) return std::nullopt;
  return pressure;
}

}  // namespace

void DescribeMemoryPressure(const windows::JobWindow& job, Citer& citer, JobFeatures& f) {
  std::optional<Pressure> worst;
  for (const auto& [number, rank] : job.ranks()) {
    const auto pressure = PressureOf(rank);
    if (pressure && (!worst || pressure->grown > worst->grown)) worst = pressure;
  }
  if (!worst) return;
  Evidence evidence = OfRanks(EvidenceKind::kMemoryPressure, proto::STORE_PROCESS,
                              "rankscope_rank_swapped_bytes{$}", job, {worst->rank});
  evidence.observed = worst->swapped;
  evidence.unit = "By";
  evidence.begin = worst->last - Seconds(worst->seconds);
  evidence.end = worst->last;
  evidence.values.Set(FieldId::kBytes, worst->grown)
      .Set(FieldId::kSeconds, worst->seconds)
      .Set(FieldId::kRate, worst->faults);
  const bool now = f.running && f.now - worst->last < kHeardWithin;
  f.notices.push_back(
      {citer.Add(std::move(evidence)), now ? "memory_pressure" : "", logs::IncidentKind::kHostOom});
}

}  // namespace rankscope::features
