// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/nvml_processes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rankscope::collectors::nvml {
namespace {

constexpr std::array<size_t, 3> kEntrySizes = {16, 24, 32};
// No pid and no size has this in its highest byte, nor has the "none" of an instance.
constexpr std::byte kFiller{0xA5};
// With as many processes more between asking how many there are and asking who.
constexpr size_t kMargin = 8;

GpuProcess Parse(const std::byte* entry, size_t size) {
  ProcessInfo info{};
  info.gpu_instance = kNotAvailable32;
  std::memcpy(&info, entry, std::min(size, sizeof info));
  GpuProcess process;
  process.pid = static_cast<int32_t>(info.pid);
  process.memory_bytes = Known(info.used_gpu_memory);
  if (info.gpu_instance != kNotAvailable32 && size > kEntrySizes[0]) {
    process.gpu_instance = info.gpu_instance;
  }
  return process;
}

}  // namespace

size_t EntryBytes(std::span<const std::byte> list, size_t count, std::byte filler) {
  const auto last =
      std::find_if(list.rbegin(), list.rend(), [filler](std::byte byte) { return byte != filler; });
  const size_t written = static_cast<size_t>(list.rend() - last);
  for (const size_t size : kEntrySizes) {
    if (size * count == written) return size;
  }
  return 0;
}

std::optional<std::vector<GpuProcess>> ReadProcesses(Session& session,
                                                     ProcessFunction Functions::*member) {
  if (session.library().functions().*member == nullptr || session.gone() != kSuccess)
    return std::nullopt;
  uint32_t count = 0;
  const Library& library = session.library();
  const Return first = library.Call(member, session.device(), &count, nullptr);
  if (first == kSuccess) {
    session.Note(first);
    return std::vector<GpuProcess>();
  }
  if (first != kInsufficientSize) {
    session.Note(first);
    return std::nullopt;
  }
  count = static_cast<uint32_t>(std::min<size_t>(count + kMargin, kMaxProcesses));
  std::vector<std::byte> list(count * kEntrySizes.back(), kFiller);
  if (!session.Ask(member, &count, list.data())) return std::nullopt;
  const size_t size = EntryBytes(list, count, kFiller);
  if (count > 0 && size == 0) return std::nullopt;
  std::vector<GpuProcess> processes;
  for (size_t i = 0; i < count; ++i) processes.push_back(Parse(list.data() + i * size, size));
  return processes;
}

}  // namespace rankscope::collectors::nvml
