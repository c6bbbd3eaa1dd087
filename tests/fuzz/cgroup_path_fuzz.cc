// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as /proc/PID/cgroup: ids are numbers, names can be printed, and what is carried through
// the door says of the job what the whole text says.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detectors/attribution/cgroup_path.h"

using namespace rankscope::attribution;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const CgroupFacts facts = ReadCgroup(text);
  const auto digits = [](std::string_view id, std::string_view more) {
    for (const char c : id) {
      if ((c < '0' || c > '9') && more.find(c) == more.npos) return false;
    }
    return true;
  };
  if (!digits(facts.job_id, "") || facts.job_id.size() > 10) std::abort();
  if (!digits(facts.pod_uid, "abcdef-") || facts.pod_uid.size() > 36) std::abort();
  if (facts.container_id.size() > 64 || facts.node_name.size() > 64) std::abort();
  if (facts.job_id.empty() && (!facts.step_id.empty() || facts.task >= 0)) std::abort();
  const std::string carried = CarriedCgroup(text);
  if (carried.size() > kCarriedCgroupCap) std::abort();
  if (size > kCarriedCgroupCap) return 0;  // of a longer text, what fits
  const CgroupFacts again = ReadCgroup(carried);
  if (again.job_id != facts.job_id || again.step_id != facts.step_id ||
      again.container_id != facts.container_id || again.pod_uid != facts.pod_uid) {
    std::abort();
  }
  return 0;
}
