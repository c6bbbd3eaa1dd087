// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/logs/failures/kernel_event.h"

#include <cctype>
#include <string>
#include <variant>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/xid_line.h"

namespace rankscope::logs {
namespace {

// A process's name without what could pass for the driver's words.
std::string Harmless(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("_-.:<>/").find(c) == std::string_view::npos) {
      c = '_';
    }
  }
  return text;
}

// The driver's line, or what one would be of what the event says.
std::string TextOf(const KernelEvent& event) {
  if (event.type == KernelEventType::kGpuLost)
    return "NVRM: GPU " + event.gpu_bus_id + ": GPU has fallen off the bus.";
  const std::optional<XidLine> line = ReadXidLine(event.text);
  if (!line)
    return "NVRM: Xid (PCI:" + event.gpu_bus_id + "): " + std::to_string(event.code) + ", ";
  if (line->name.empty()) return event.text;
  const auto head = static_cast<size_t>(line->name.data() - event.text.data());
  return event.text.substr(0, head) + Harmless(line->name) + ", " + std::string(line->detail);
}

}  // namespace

std::optional<Incident> ReadKernelEvent(const KernelEvent& event) {
  if (event.type != KernelEventType::kXid && event.type != KernelEventType::kGpuLost)
    return std::nullopt;
  const std::string text = TextOf(event);
  CleanLine line;
  line.text = line.original = text;
  RecordList records;
  for (const ShapeRow& row : KernelShapes()) {
    if (row.name == "xid" || row.name == "fallen_off_bus") row.parse(line, records);
  }
  for (Record& record : records) {
    if (auto* incident = std::get_if<Incident>(&record);
        incident && incident->kind == IncidentKind::kXid) {
      // Of a message in several lines, the card's is another.
      if (FieldOf(*incident, "bus_id").empty()) AddField(*incident, "bus_id", event.gpu_bus_id);
      return std::move(*incident);
    }
  }
  return std::nullopt;
}

}  // namespace rankscope::logs
