// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the answer of the kubelet's pod-resources service: what is read of it is a GPU with
// a pod, and of no more GPUs than are believed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/gpu/pod_resources.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  const auto found =
      collectors::ReadPodResources(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!found) return 0;
  if (found->size() > collectors::kMaxPodDevices) std::abort();
  for (const GpuProfile& device : *found) {
    if (device.uuid.empty() || device.pods.empty()) std::abort();
  }
  return 0;
}
