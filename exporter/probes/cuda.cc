// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/cuda.h"

#include <utility>

#include "detectors/model/event_types.h"
#include "exporter/probes/call_maps.h"

namespace rankscope::probes {

Cuda::Cuda(std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
           bool force)
    : Calls(CallObjectKind::kCuda, "cuda", CudaCalls(), std::move(processes), std::move(tracked),
            force) {}

Cuda::~Cuda() {
  Stop();
}

void Cuda::Report(const ProcessKey& process, int64_t now_ns, bool gone) {
  const auto counts =
      ReadEntry<uint32_t, rs_cuda_counts>(object()->counts(), static_cast<uint32_t>(process.pid));
  if (!counts && gone) return;
  const auto lives = [&process](uint32_t thread) { return ThreadLives(process.pid, thread); };
  TellSamples(process,
              numbers_[process].Take(counts.value_or(rs_cuda_counts{}), now_ns, watch_, lives),
              "rankscope_kernel_launches_total");
}

void Cuda::OnCall(const ProcessKey& process, const rs_call& call) {
  Event event;
  event.process = process;
  const bool allocation = call.header.kind == RS_CALL_ALLOCATION;
  event.type = WireType(allocation ? EventType::kAllocationFailed : EventType::kCudaCallFailed);
  event.str.push_back({"call", FunctionName(call.function)});
  if (allocation) event.num.push_back({"bytes", static_cast<int64_t>(call.bytes)});
  event.num.push_back({"result", call.result});
  TellEvent(std::move(event), static_cast<int64_t>(call.header.time_ns));
}

void Cuda::Forget(const ProcessKey& process) {
  numbers_.erase(process);
}

}  // namespace rankscope::probes
