// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kubelet's pod-resources service (v1.PodResourcesLister/List) says of GPUs: which
// container of which pod was given which. Any bytes may come. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/gpu_reading.h"

namespace rankscope::collectors {

// Devices that are named; the rest of a longer answer is left out.
inline constexpr size_t kMaxPodDevices = 1024;

// The one message of a gRPC answer, which is what a request without content looks like, too.
std::string PodResourcesRequest();
// Each device once, by the id that NVIDIA's device plugin gives it (a uuid, or the device file's
// name); nullopt: this is no such answer.
std::optional<std::vector<GpuProfile>> ReadPodResources(std::string_view answer);

}  // namespace rankscope::collectors
