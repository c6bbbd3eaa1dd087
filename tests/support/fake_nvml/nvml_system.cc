// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Functions of the library as a whole: start, devices, events.

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>

#include "exporter/loop/owned_fd.h"
#include "tests/support/fake_nvml/state.h"

using namespace fake_nvml;  // NOLINT: the symbols are C's
using abi::Device;
using abi::EventData;
using abi::EventSet;
using abi::Return;

namespace {

std::atomic<int> initialised{0};

Return GiveText(const std::string& text, char* out, uint32_t size) {
  if (text.size() + 1 > size) return abi::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

struct Listener {
  std::set<size_t> gpus;
  size_t told = 0;  // of the script's Xids
  rankscope::OwnedFd changes{inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
};

// The driver's own list: a set that nobody frees is its, until the process ends.
struct Listeners {
  std::mutex lock;
  std::set<Listener*> all;
};
Listeners& OfThisProcess() {
  static Listeners& listeners = *new Listeners;
  return listeners;
}

// As a driver waits, without a cost: until the script's file is another, or `until`.
void AwaitChange(const Listener& listener, double until) {
  pollfd changed{listener.changes.get(), POLLIN, 0};
  poll(&changed, 1, static_cast<int>(std::max(0.0, until - Seconds()) * 1e3) + 1);
  std::array<char, 4096> events;
  while (read(listener.changes.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  const Return result = Result(__func__);
  if (result == abi::kSuccess) ++initialised;
  return result;
}

Return nvmlShutdown() {
  if (initialised == 0) return abi::kUninitialized;
  --initialised;
  return abi::kSuccess;
}

Return nvmlSystemGetDriverVersion(char* text, uint32_t size) {
  if (initialised == 0) return abi::kUninitialized;
  const Return result = Result(__func__);
  return result != abi::kSuccess ? result : GiveText(Now()->driver, text, size);
}

Return nvmlDeviceGetCount_v2(uint32_t* count) {
  if (initialised == 0) return abi::kUninitialized;
  *count = static_cast<uint32_t>(Now()->gpus.size());
  return Result(__func__);
}

Return nvmlDeviceGetHandleByIndex_v2(uint32_t index, Device* device) {
  if (initialised == 0) return abi::kUninitialized;
  if (index >= Now()->gpus.size()) return abi::kInvalidArgument;
  *device = HandleOf(index);
  return Call(*device, __func__).result;
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (initialised == 0) return abi::kUninitialized;
  const auto script = Now();
  for (size_t i = 0; i < script->gpus.size(); ++i) {
    if (script->gpus[i].uuid != uuid) continue;
    *device = HandleOf(i);
    return Call(*device, __func__).result;
  }
  return abi::kNotFound;
}

Return nvmlDeviceGetName(Device device, char* text, uint32_t size) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  const std::string part = call.part == nullptr ? "" : " MIG " + call.part->profile;
  return GiveText(call.gpu->name + part, text, size);
}

Return nvmlDeviceGetUUID(Device device, char* text, uint32_t size) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  return GiveText(call.part != nullptr ? call.part->uuid : call.gpu->uuid, text, size);
}

// Backwards, as a driver may count them: not the index.
Return nvmlDeviceGetMinorNumber(Device device, uint32_t* minor) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  *minor = static_cast<uint32_t>(call.script->gpus.size() - 1 - call.index);
  return abi::kSuccess;
}

Return nvmlDeviceGetSerial(Device device, char* text, uint32_t size) {
  const Call call(device, __func__);
  return call.fails() ? call.result : GiveText(call.gpu->serial, text, size);
}

Return nvmlDeviceGetPciInfo_v3(Device device, abi::PciInfo* info) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  return GiveText(call.gpu->bus_id, info->bus_id, sizeof info->bus_id);
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, uint32_t index, Device* part) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (index >= call.gpu->parts.size()) return abi::kNotFound;
  *part = HandleOfPart(call.index, index);
  return abi::kSuccess;
}

Return nvmlDeviceGetGpuInstanceId(Device device, uint32_t* number) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if (call.part == nullptr) return abi::kNotSupported;
  *number = call.part->gpu_instance;
  return abi::kSuccess;
}

Return nvmlEventSetCreate(EventSet* set) {
  if (initialised == 0) return abi::kUninitialized;
  const Return result = Result(__func__);
  if (result != abi::kSuccess) return result;
  auto* const listener = new Listener;
  if (const char* path = std::getenv("FAKE_NVML_SCRIPT")) {
    const std::string folder = std::filesystem::path(path).parent_path();
    inotify_add_watch(listener->changes.get(), folder.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE);
  }
  listener->told = Now()->xids.size();  // what was before is not told
  {
    const std::lock_guard held(OfThisProcess().lock);
    OfThisProcess().all.insert(listener);
  }
  *set = reinterpret_cast<EventSet>(listener);
  return result;
}

Return nvmlEventSetFree(EventSet set) {
  auto* const listener = reinterpret_cast<Listener*>(set);
  const std::lock_guard held(OfThisProcess().lock);
  OfThisProcess().all.erase(listener);
  delete listener;
  return abi::kSuccess;
}

Return nvmlDeviceGetSupportedEventTypes(Device device, uint64_t* types) {
  return Give(device, __func__, "event_types", types);
}

Return nvmlDeviceRegisterEvents(Device device, uint64_t types, EventSet set) {
  const Call call(device, __func__);
  if (call.fails()) return call.result;
  if ((types & abi::kEventXid) == 0) return abi::kNotSupported;
  reinterpret_cast<Listener*>(set)->gpus.insert(call.index);
  return abi::kSuccess;
}

Return nvmlEventSetWait_v2(EventSet set, EventData* data, uint32_t timeout_ms) {
  Listener& listener = *reinterpret_cast<Listener*>(set);
  const double until = Seconds() + timeout_ms * 1e-3;
  std::shared_ptr<const Script> seen;
  for (;;) {
    const auto script = Now();
    listener.told = std::min(listener.told, script->xids.size());
    while (listener.told < script->xids.size()) {
      const Xid& xid = script->xids[listener.told++];
      if (!listener.gpus.contains(xid.gpu)) continue;
      *data = {HandleOf(xid.gpu), abi::kEventXid, xid.code, abi::kNotAvailable32,
               abi::kNotAvailable32};
      return abi::kSuccess;
    }
    if (script != seen) {
      for (const size_t gpu : listener.gpus) {
        if (const Call call(HandleOf(gpu), __func__); call.fails()) return call.result;
      }
      seen = script;
    }
    if (Seconds() >= until) return abi::kTimeout;
    AwaitChange(listener, std::min(until, script->next.value_or(until)));
  }
}

}  // extern "C"
