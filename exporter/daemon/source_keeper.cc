// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/source_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rankscope::exporter {
namespace {

const char* Word(Availability state) {
  switch (state) {
    case Availability::kUp:
      return "up";
    case Availability::kDown:
      return "down";
    case Availability::kStale:
      return "stale";
    case Availability::kUnsupported:
      return "unsupported";
    case Availability::kDenied:
      return "denied";
    case Availability::kNotApplicable:
      return "not_applicable";
    case Availability::kUnspecified:
      break;
  }
  return "unknown";
}

}  // namespace

struct SourceKeeper::Kept {
  uint32_t number = 0;
  std::string name;
  Duration interval;
  std::unique_ptr<Source> source;
  std::string superseded_by;
  std::optional<Door> door;
  Availability state = Availability::kUnspecified;
  std::string reason;
  bool running = false;
  bool told_in_start = false;  // the source said more than its error can
  int64_t told_lost = 0;
  Timestamp told;
  Duration retry = kFirstRetry;
  EventLoop::TimerId retry_timer = 0;
};

SourceKeeper::SourceKeeper(EventLoop& loop, Logger& log, std::string node,
                           std::function<void(const Observation&)> next)
    : loop_(loop), log_(log), node_(std::move(node)), next_(std::move(next)) {}

SourceKeeper::~SourceKeeper() {
  Stop();
}

void SourceKeeper::Add(uint32_t number, std::string name, Duration interval,
                       std::unique_ptr<Source> source, std::string reason_off,
                       std::string superseded_by) {
  auto kept = std::make_unique<Kept>();
  kept->number = number;
  kept->name = std::move(name);
  kept->interval = interval;
  kept->source = std::move(source);
  kept->superseded_by = std::move(superseded_by);
  if (!kept->source) {
    kept->state = Availability::kNotApplicable;
    kept->reason = std::move(reason_off);
  }
  kept->door.emplace(number, node_, loop_, next_,
                     [this, raw = kept.get()](const SourceState& state) { OnState(*raw, state); });
  kept_.push_back(std::move(kept));
}

void SourceKeeper::Start() {
  for (const auto& kept : kept_) {
    if (!kept->source) {
      Tell(*kept);
    } else if (kept->superseded_by.empty()) {
      TryStart(*kept);
    }
  }
  for (const auto& kept : kept_) {
    if (kept->source && !kept->running && !kept->superseded_by.empty() && !IsSuperseded(*kept)) {
      TryStart(*kept);
    }
  }
}

bool SourceKeeper::IsSuperseded(const Kept& kept) const {
  return std::any_of(kept_.begin(), kept_.end(), [&kept](const auto& other) {
    return other->name == kept.superseded_by && other->state == Availability::kUp;
  });
}

// `by` has come up or gone down: those whose place it takes rest or work.
void SourceKeeper::SettleSuperseded(const Kept& by) {
  for (const auto& kept : kept_) {
    if (!kept->source || kept->superseded_by != by.name) continue;
    if (by.state == Availability::kUp) {
      Halt(*kept);
      kept->state = Availability::kNotApplicable;
      kept->reason = "superseded by " + by.name;
      Tell(*kept);
    } else if (kept->state == Availability::kNotApplicable) {
      TryStart(*kept);
    }
  }
}

void SourceKeeper::Halt(Kept& kept) {
  loop_.Cancel(kept.retry_timer);
  if (std::exchange(kept.running, false)) kept.source->Stop();
}

void SourceKeeper::TryStart(Kept& kept) {
  kept.told_in_start = false;
  const rankscope::Status status = kept.source->Start(loop_, *kept.door);
  if (status.ok()) {
    kept.running = true;
    kept.retry = kFirstRetry;
    if (kept.told_in_start) return;
    SourceState up;
    up.state = Availability::kUp;
    OnState(kept, up);
    return;
  }
  if (!kept.told_in_start) {
    SourceState down;
    down.state = Availability::kDown;
    down.reason = status.error();
    OnState(kept, down);
  }
  kept.retry_timer = loop_.After(kept.retry, [this, &kept] { TryStart(kept); });
  kept.retry = {std::min(2 * kept.retry.ns, kLongestRetry.ns)};
}

void SourceKeeper::OnState(Kept& kept, const SourceState& state) {
  kept.told_in_start = true;
  if (kept.state == state.state && kept.reason == state.reason) return;
  kept.state = state.state;
  kept.reason = state.reason;
  Tell(kept);
  if (kept.state == Availability::kUp && kept.reason.empty()) {
    log_.Info("source is up", {{"source", kept.name}});
  } else if (kept.state == Availability::kUp) {
    log_.Warn("source is partly up", {{"source", kept.name}, {"reason", kept.reason}});
  } else {
    log_.Warn("source is not up",
              {{"source", kept.name}, {"state", Word(kept.state)}, {"reason", kept.reason}});
  }
  SettleSuperseded(kept);
}

Observation SourceKeeper::StateOf(const Kept& kept) const {
  SourceState state;
  state.source = kept.number;
  state.name = kept.name;
  state.state = kept.state;
  state.reason = kept.reason;
  state.lost = kept.source ? kept.source->lost() : 0;
  state.lost_untold = kept.source ? kept.source->lost_untold() : 0;
  state.interval = kept.interval;
  Observation observation;
  observation.t = loop_.Now();
  observation.seq = Door::kFirstOwnSeq + kept.door->accepted();
  observation.source = kept.number;
  observation.node = node_;
  observation.kind = std::move(state);
  return observation;
}

void SourceKeeper::Tell(Kept& kept) {
  kept.told_lost = kept.source ? kept.source->lost_untold() : 0;
  kept.told = loop_.Now();
  next_(StateOf(kept));
}

void SourceKeeper::TellLosses() {
  for (const auto& kept : kept_) {
    if (!kept->source || kept->source->lost_untold() == kept->told_lost) continue;
    if (kept->told_lost == 0 || loop_.Now() - kept->told >= kLossInterval) Tell(*kept);
  }
}

void SourceKeeper::Stop() {
  for (const auto& kept : kept_) Halt(*kept);
}

std::vector<metrics::SourceStatus> SourceKeeper::Status(int64_t wall_offset_ns) const {
  std::vector<metrics::SourceStatus> all;
  for (const auto& kept : kept_) {
    metrics::SourceStatus status;
    status.name = kept->name;
    status.state = kept->state;
    status.reason = kept->reason;
    status.lost = kept->source ? kept->source->lost() : 0;
    status.observations = kept->door->accepted();
    if (kept->door->accepted() > 0) {
      status.last_event_wall_seconds =
          static_cast<double>(kept->door->last().ns + wall_offset_ns) * 1e-9;
    }
    for (ProbeUse& use : kept->source ? kept->source->probes() : std::vector<ProbeUse>()) {
      status.probes.push_back(
          {std::move(use.probe), std::move(use.sites), use.runs, use.seconds, use.duty_ratio});
    }
    if (kept->source) {
      for (const Source::Count& count : kept->source->counts()) {
        status.counts.emplace_back(count.name, count.value);
      }
      status.gpus = kept->source->gpus();
      status.library_calls = kept->source->library_calls();
      status.gpu_profiles = kept->source->gpu_profiles();
      status.slurm = kept->source->slurm();
      XidReport xids = kept->source->xids();
      status.xids_heard = xids.heard;
      status.xids_pending = std::move(xids.pending);
      status.sxids = std::move(xids.switches);
      for (XidCount& xid : xids.counts) {
        status.xids.push_back({std::move(xid.card), xid.code, xid.count,
                               static_cast<double>(xid.last.ns + wall_offset_ns) * 1e-9});
      }
    }
    all.push_back(std::move(status));
  }
  return all;
}

std::vector<Observation> SourceKeeper::States() const {
  std::vector<Observation> states;
  for (const auto& kept : kept_) states.push_back(StateOf(*kept));
  return states;
}

}  // namespace rankscope::exporter
