// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel has counted of one process's calls into NCCL, as samples. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "bpf/events/calls.h"
#include "detectors/model/observation.h"

namespace rankscope::probes {

struct NcclView {
  rs_nccl_counts counts{};
  std::vector<rs_communicator> communicators;
  std::vector<rs_asked> asked;
};

// Collectives that were entered on the communicators of the most ranks: all ranks of the job enter
// the same ones, so that who has entered fewer is behind. Nothing where no communicator's making
// was seen.
std::optional<uint64_t> CollectiveSequence(const NcclView& view);

// An event that the watchdog has not asked for this long belongs to nothing in flight: it asks ten
// times a second, or has ended.
inline constexpr int64_t kForgottenEventNs = 30'000'000'000;

std::vector<Sample> NcclSamples(const NcclView& view, int64_t now_ns,
                                const std::function<bool(uint32_t thread)>& lives);

}  // namespace rankscope::probes
