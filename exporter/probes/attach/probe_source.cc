// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/probe_source.h"

namespace rankscope::probes {

ProbeSource::ProbeSource(std::string name, std::shared_ptr<collectors::ProcessTable> table,
                         std::shared_ptr<TrackedMap> tracked, bool force)
    : name_(std::move(name)),
      table_(std::move(table)),
      tracked_(std::move(tracked)),
      force_(force) {}

Result<int> ProbeSource::Admit(Sink& sink, const std::optional<Capability>& obstacle) {
  sink_ = &sink;
  if (obstacle && !force_) {
    TellState(obstacle->denied ? Availability::kDenied : Availability::kUnsupported,
              name_ + ": " + obstacle->text);
    return Error{obstacle->text};
  }
  Result<int> tracked = tracked_->Open();
  if (!tracked) return Unsupported(name_ + ": " + tracked.error());
  return tracked;
}

Error ProbeSource::Unsupported(std::string reason) {
  TellState(Availability::kUnsupported, reason);
  return Error{std::move(reason)};
}

bool ProbeSource::Lives(const ProcessKey& key) const {
  const collectors::TrackedProcess* const tracked = table_->Find(key.pid);
  return tracked != nullptr && tracked->key == key;
}

bool ProbeSource::IsOurs(const ProcessKey& key) const {
  return Lives(key) || table_->HasEnded(key);
}

}  // namespace rankscope::probes
