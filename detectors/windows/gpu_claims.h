// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which GPUs of the node are a job's, and of which of its ranks: by what its processes' environment
// says and by whom the driver sees on a card. A card that the job was given is its own although
// nobody computes on it. The uuid is the identity; numbers become one as soon as the driver has
// told which card they are. Bounded. Single writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "detectors/attribution/gpu_environment.h"
#include "detectors/windows/trackers/gpu_tracker.h"

namespace rankscope::windows {

struct ClaimedGpu {
  const GpuWindow* gpu = nullptr;
  // Who says that it is the job's; kNobody: only that a process of the job computes on it.
  attribution::GpuWord word = attribution::GpuWord::kNobody;
  std::vector<int32_t> ranks;  // that have computed on it; else those that should; rising
  bool attached = false;       // a process of the job computes on it now
};

class GpuClaims {
 public:
  static constexpr size_t kMaxRanks = GpuTracker::kMaxRanks;  // of one node

  // `rank`: -1 for a process that is none.
  void OnEnvironment(const attribution::GpuEnvironment& told, int32_t rank);

  // The cards that a prolog's files give the job now; believed where nobody else says anything.
  void OnMapping(std::vector<attribution::GpuName> cards);

  // The job's cards, by index of the driver, of those that `tracker` knows. Numbers are believed
  // until one of its processes computes on a card that they leave out, and of no node that divides
  // a card into instances, which schedulers number among the cards.
  std::vector<ClaimedGpu> Of(const GpuTracker& tracker) const;

  // Whoever gives cards says that the job was given some here.
  bool given() const { return !given_.empty(); }
  bool mig() const { return mig_; }
  // A rank is told to see no card.
  bool hidden() const;

  template <class A>
  void Fields(A& a) {
    a(given_, given_by_, own_, mig_);
    while (own_.size() > kMaxRanks + 1) own_.erase(own_.begin());  // restored from damaged bytes
  }

 private:
  using Names = std::vector<attribution::GpuName>;
  struct Own {
    Names names;
    attribution::GpuWord by = attribution::GpuWord::kNobody;
    bool none = false;  // it is told to see no card

    template <class A>
    void Fields(A& a) {
      a(names, by, none);
    }
  };

  bool Should(int32_t rank, const Own& own, const GpuWindow& gpu, const GpuTracker& tracker) const;
  bool NumbersHold(const Names& names, const GpuTracker& tracker) const;

  Names given_;
  attribution::GpuWord given_by_ = attribution::GpuWord::kNobody;
  std::map<int32_t, Own> own_;  // by rank; -1: of the first process that says so and is none
  bool mig_ = false;
};

}  // namespace rankscope::windows
