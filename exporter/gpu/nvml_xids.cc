// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_xids.h"

#include <algorithm>

#include "detectors/model/pci_card.h"

namespace rankscope::collectors::nvml {

void XidListener::End() {
  if (set_ != nullptr) library_->Call(&Functions::event_set_free, set_);
  set_ = nullptr;
  cards_.clear();
}

// Why nothing is listened to, if so: a GPU that does not tell of Xids, or is lost, is left out.
Return XidListener::Begin(uint32_t count) {
  if (const Return error = library_->Call(&Functions::event_set_create, &set_); error != kSuccess) {
    set_ = nullptr;
    return error;
  }
  Return last = kNotSupported;
  for (uint32_t i = 0; i < count; ++i) {
    Device device = nullptr;
    PciInfo pci{};
    uint64_t types = 0;
    Return error = library_->Call(&Functions::handle_by_index, i, &device);
    if (error == kSuccess) error = library_->Call(&Functions::pci_info, device, &pci);
    if (error == kSuccess) error = library_->Call(&Functions::supported_events, device, &types);
    if (error == kFunctionNotFound) {  // older than the driver that lists them
      types = kEventXid;
      error = pci.bus_id[0] == '\0' ? kNotSupported : kSuccess;
    }
    if (error == kSuccess && (types & kEventXid) == 0) error = kNotSupported;
    if (error == kSuccess)
      error = library_->Call(&Functions::register_events, device, types & kEventXid, set_);
    if (error != kSuccess) {
      last = error;
      continue;
    }
    pci.bus_id[sizeof pci.bus_id - 1] = '\0';
    cards_.emplace_back(device, PciCard(pci.bus_id));
  }
  if (!cards_.empty()) return kSuccess;
  End();
  return last;
}

Hearing XidListener::Listen(bool anew, uint32_t count, Duration wait) {
  Hearing hearing;
  if (anew) End();
  if (set_ == nullptr) hearing.error = Begin(count);
  if (hearing.error != kSuccess) return hearing;
  hearing.listens = true;
  auto milliseconds = static_cast<uint32_t>(wait.ns / 1'000'000);
  while (hearing.xids.size() < kMost) {
    EventData data{};
    const Return error =
        library_->Call(&Functions::event_wait, set_, &data, std::exchange(milliseconds, 0));
    if (error == kTimeout) break;
    if (error != kSuccess) {
      // Lost GPUs stay in the set and end each wait; the next one is without them.
      hearing.error = error;
      hearing.listens = false;
      End();
      break;
    }
    if ((data.type & kEventXid) == 0) continue;
    const auto card = std::find_if(cards_.begin(), cards_.end(),
                                   [&](const auto& each) { return each.first == data.device; });
    if (card != cards_.end())
      hearing.xids.push_back({card->second, static_cast<int32_t>(data.data)});
  }
  return hearing;
}

}  // namespace rankscope::collectors::nvml
