// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/fault_log.h"

#include <algorithm>
#include <utility>

namespace rankscope::windows {
namespace {

constexpr KernelEventType kTypes[] = {KernelEventType::kSxid,         KernelEventType::kPcie,
                                      KernelEventType::kMachineCheck, KernelEventType::kMemory,
                                      KernelEventType::kHungTask,     KernelEventType::kNetworkFile,
                                      KernelEventType::kDisk,         KernelEventType::kEfa};

// net/sunrpc/clnt.c: "nfs: server 10.0.0.1 not responding, still trying", and later "... OK".
std::string_view ServerOf(std::string_view text) {
  constexpr std::string_view kHead = "nfs: server ";
  if (!text.starts_with(kHead)) return {};
  text.remove_prefix(kHead.size());
  return text.substr(0, text.find(' '));
}

bool SaysOver(std::string_view text) {
  return !ServerOf(text).empty() && text.ends_with(" OK");
}

}  // namespace

bool FaultLog::Takes(KernelEventType type) {
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

void FaultLog::OnKernelEvent(const KernelEvent& event, int32_t pid, int32_t rank, Timestamp t) {
  const std::string_view server =
      event.type == KernelEventType::kNetworkFile ? ServerOf(event.text) : "";
  const std::string_view device = server.empty() ? std::string_view(event.gpu_bus_id) : server;
  const bool over = event.type == KernelEventType::kNetworkFile && SaysOver(event.text);
  // The newest of its kind: a server that went silent again is a fault of its own.
  const auto known = std::find_if(faults_.rbegin(), faults_.rend(), [&](const KernelFault& fault) {
    return fault.type == event.type && fault.device == device && fault.code == event.code &&
           fault.pid == pid;
  });
  if (over) {
    if (known != faults_.rend()) known->over = true;
    return;
  }
  if (known != faults_.rend() && !known->over) {
    known->text = event.text.substr(0, KernelFault::kTextCap);
    known->last = t;
    ++known->times;
    return;
  }
  if (faults_.size() >= kMax) {
    faults_.erase(faults_.begin());
    ++dropped_;
  }
  KernelFault fault;
  fault.type = event.type;
  fault.text = event.text.substr(0, KernelFault::kTextCap);
  fault.device = device.substr(0, KernelFault::kTextCap);
  fault.code = event.code;
  fault.pid = pid;
  fault.rank = rank;
  fault.times = 1;
  fault.first = fault.last = t;
  faults_.push_back(std::move(fault));
}

}  // namespace rankscope::windows
