// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/logs/kernel_event.h"

#include <string>
#include <variant>

#include "detectors/logs/incident_text.h"
#include "detectors/logs/shape_groups.h"

namespace rankscope::logs {

std::optional<Incident> ReadKernelEvent(const KernelEvent& event) {
  if (event.type != "xid" && event.type != "gpu_lost") return std::nullopt;
  const std::string text = !event.text.empty() ? event.text
                                               : "NVRM: Xid (PCI:" + event.gpu_bus_id +
                                                     "): " + std::to_string(event.code) + ", ";
  CleanLine line;
  line.text = line.original = text;
  RecordList records;
  for (const ShapeRow& row : KernelShapes()) {
    for (const std::string_view anchor : row.anchors) {
      if (text.find(anchor) == std::string::npos) continue;
      row.parse(line, records);
      break;
    }
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
