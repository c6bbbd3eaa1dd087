// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/gpu_claims.h"

#include <algorithm>
#include <utility>

namespace rankscope::windows {
namespace {

using attribution::GpuEnvironment;
using attribution::GpuName;
using attribution::GpuWord;
using attribution::IsNamed;

bool AnyIs(const std::vector<GpuName>& names, const GpuWindow& gpu) {
  return std::any_of(names.begin(), names.end(), [&gpu](const GpuName& name) {
    return IsNamed(name, gpu.uuid, gpu.index, gpu.minor);
  });
}

bool Computes(const GpuTracker& tracker, int32_t rank) {
  return std::any_of(tracker.gpus().begin(), tracker.gpus().end(), [rank](const auto& entry) {
    const std::vector<int32_t>& ranks = entry.second.ranks;
    return std::binary_search(ranks.begin(), ranks.end(), rank);
  });
}

}  // namespace

void GpuClaims::OnEnvironment(const GpuEnvironment& told, int32_t rank) {
  mig_ = mig_ || told.mig;
  const bool better = given_.empty() || told.given_by < given_by_;
  if (!told.given.empty() && better) {
    given_ = told.given;
    given_by_ = told.given_by;
  } else if (!told.given.empty() && told.given_by == given_by_) {
    // A container or a step of each task's own.
    for (const GpuName& name : told.given) {
      const bool known = std::find(given_.begin(), given_.end(), name) != given_.end();
      if (!known && given_.size() < attribution::kMaxGpusNamed) given_.push_back(name);
    }
  }
  if (rank < 0 && (told.own.empty() || own_.contains(rank))) return;
  if (own_.size() > kMaxRanks && !own_.contains(rank)) return;
  own_[rank] = {told.own, told.own_by, told.none};
}

void GpuClaims::OnMapping(Names cards) {
  if (given_by_ != GpuWord::kNobody && given_by_ != GpuWord::kMapping) return;
  given_by_ = cards.empty() ? GpuWord::kNobody : GpuWord::kMapping;
  given_ = std::move(cards);
}

bool GpuClaims::hidden() const {
  return std::any_of(own_.begin(), own_.end(),
                     [](const auto& entry) { return entry.first >= 0 && entry.second.none; });
}

bool GpuClaims::NumbersHold(const Names& names, const GpuTracker& tracker) const {
  if (mig_) return false;
  return std::none_of(tracker.gpus().begin(), tracker.gpus().end(), [&](const auto& entry) {
    const GpuWindow& gpu = entry.second;
    return gpu.mig || (gpu.held && !AnyIs(names, gpu));
  });
}

bool GpuClaims::Should(int32_t rank, const Own& own, const GpuWindow& gpu,
                       const GpuTracker& tracker) const {
  if (!AnyIs(own.names, gpu)) return false;
  const bool by_number = own.by == GpuWord::kOrdinal || own.by == GpuWord::kDevices;
  if (by_number && (mig_ || gpu.mig)) return false;
  // What the launcher may see is for its ranks to share; what a rank does goes before what it
  // should.
  return rank < 0 ? own_.size() == 1 : !Computes(tracker, rank);
}

std::vector<ClaimedGpu> GpuClaims::Of(const GpuTracker& tracker) const {
  Names given = given_;
  // A prolog's files name the card of each instance.
  if (given_by_ != GpuWord::kMapping && !NumbersHold(given, tracker))
    std::erase_if(given, [](const GpuName& name) { return name.uuid.empty(); });
  std::vector<ClaimedGpu> claimed;
  for (const auto& [uuid, gpu] : tracker.gpus()) {
    if (gpu.index < 0) continue;  // its numbers came before its name
    ClaimedGpu card;
    card.gpu = &gpu;
    for (const auto& [rank, own] : own_) {
      if (!Should(rank, own, gpu, tracker)) continue;
      card.word = own.by;
      if (rank >= 0) card.ranks.push_back(rank);
    }
    if (AnyIs(given, gpu)) card.word = given_by_;
    if (card.word == GpuWord::kNobody && !gpu.held) continue;
    if (!gpu.ranks.empty()) card.ranks = gpu.ranks;
    card.attached = std::any_of(gpu.holders.begin(), gpu.holders.end(),
                                [](const auto& holder) { return holder.second.own; });
    claimed.push_back(std::move(card));
  }
  std::stable_sort(claimed.begin(), claimed.end(), [](const ClaimedGpu& a, const ClaimedGpu& b) {
    return a.gpu->index < b.gpu->index;
  });
  return claimed;
}

}  // namespace rankscope::windows
