// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a record of the kernel's log: what is read of it stays within its bounds, and a
// card's name is a card's name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detectors/logs/failures/kernel_event.h"
#include "exporter/kernel_log/kernel_line.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view record(reinterpret_cast<const char*>(data), size);
  const auto line = collectors::ParseKernelRecord(record);
  if (!line) return 0;
  if (line->text.size() > collectors::KernelLine::kTextCap || line->pid < 0) std::abort();
  if (line->bus_id.find_first_not_of("0123456789abcdef:") != std::string::npos) std::abort();
  KernelEvent event;
  event.type = line->kind;
  event.text = line->text;
  event.gpu_bus_id = line->bus_id;
  event.code = line->code;
  const auto incident = logs::ReadKernelEvent(event);
  if (incident && incident->kind != logs::IncidentKind::kXid) std::abort();
  return 0;
}
