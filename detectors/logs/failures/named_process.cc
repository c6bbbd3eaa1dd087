// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/named_process.h"

#include <variant>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"

namespace rankscope::logs {
namespace {

// From the begin of the naming line to that of the next: another writer may have put one between.
constexpr int64_t kNextLine = 400;

bool SaysHowItEnded(const Incident& incident) {
  return incident.shape == "hydra_exit" || incident.shape == "prte_exit";
}

}  // namespace

void NamedProcess::Feed(RecordList& records) {
  for (size_t i = 0; i < records.size();) {
    auto* const incident = std::get_if<Incident>(&records[i]);
    if (incident != nullptr && incident->shape == kNamedProcess) {
      rank_ = incident->rank;
      pid_ = incident->pid;
      node_ = FieldOf(*incident, "node");
      offset_ = incident->offset;
      records.erase(records.begin() + static_cast<ptrdiff_t>(i));
      continue;
    }
    ++i;
    if (incident == nullptr || rank_ < 0 || !SaysHowItEnded(*incident)) continue;
    if (incident->offset - offset_ <= kNextLine) {
      incident->rank = rank_;
      incident->local_rank = -1;
      incident->pid = pid_;
      AddField(*incident, "node", node_);
    }
    rank_ = -1;
  }
}

}  // namespace rankscope::logs
