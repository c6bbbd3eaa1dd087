// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/notices.h"

#include <array>

#include "detectors/features/memory_pressure.h"

namespace rankscope::features {
namespace {

using Describe = void (*)(const windows::JobWindow& job, Citer& citer, JobFeatures& f);
constexpr std::array<Describe, 1> kNotices = {DescribeMemoryPressure};

}  // namespace

void DescribeNotices(const windows::JobWindow& job, Citer& citer, JobFeatures& f) {
  for (const Describe describe : kNotices) describe(job, citer, f);
}

}  // namespace rankscope::features
