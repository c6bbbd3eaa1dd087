// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/waiting_room.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace rankscope::exporter {
namespace {

constexpr std::array<std::string_view, 4> kRankKeys = {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                                       "PMI_RANK"};

// A rank whose job only its launcher can name.
bool NeedsLauncher(const ProcessStart& start) {
  if (!start.job_id.empty() || start.parent.pid <= 1) return false;
  bool ranked = false;
  for (const KeyValue& variable : start.env) {
    if (variable.key == "SLURM_JOB_ID") return false;
    ranked =
        ranked || std::find(kRankKeys.begin(), kRankKeys.end(), variable.key) != kRankKeys.end();
  }
  return ranked;
}

// The process that an observation is about; pid 0 = none.
ProcessKey SubjectOf(const Observation& observation) {
  if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) return start->key;
  if (const auto* exit = std::get_if<ProcessExit>(&observation.kind)) return exit->key;
  if (const auto* sent = std::get_if<SignalSent>(&observation.kind)) return sent->target;
  if (const auto* event = std::get_if<KernelEvent>(&observation.kind)) return event->victim;
  if (const auto* event = std::get_if<Event>(&observation.kind)) return event->process;
  if (const auto* batch = std::get_if<SampleBatch>(&observation.kind)) {
    if (batch->subject.kind == Subject::Kind::kProcess) return batch->subject.process;
  }
  return {};
}

}  // namespace

WaitingRoom::WaitingRoom(std::function<bool(const ProcessKey&)> known,
                         std::function<void(const Observation&)> next)
    : known_(std::move(known)), next_(std::move(next)) {}

bool WaitingRoom::MustWait(const Observation& observation) const {
  if (processes_.contains(SubjectOf(observation))) return true;
  const auto* start = std::get_if<ProcessStart>(&observation.kind);
  if (start == nullptr) return false;
  if (processes_.contains(start->parent)) return true;
  return NeedsLauncher(*start) && !known_(start->parent);
}

void WaitingRoom::Accept(const Observation& observation, Timestamp now) {
  const ProcessKey subject = SubjectOf(observation);
  const auto* start = std::get_if<ProcessStart>(&observation.kind);
  if (MustWait(observation)) {
    const uint32_t uid = start != nullptr ? start->uid : processes_.at(subject);
    Admit({observation, now + kPatience, uid});
    if (counts_[uid] > kMaxPerUser) {
      ReleaseUser(uid);
    } else if (queue_.size() >= kCapacity) {
      const auto most = std::max_element(
          counts_.begin(), counts_.end(),
          [](const auto& one, const auto& other) { return one.second < other.second; });
      ReleaseUser(most->first);
    }
    return;
  }
  next_(observation);
  const auto* mark = std::get_if<RunMark>(&observation.kind);
  const bool begins = mark != nullptr && mark->what == RunMark::What::kBegin;
  if ((start != nullptr && awaited_.contains(start->key)) ||
      (begins && awaited_.contains(mark->root))) {
    Retry(now);
    if (IsStrange(observation)) Admit({observation, now + kPatience, start->uid});
  }
}

bool WaitingRoom::IsStrange(const Observation& observation) const {
  const auto* start = std::get_if<ProcessStart>(&observation.kind);
  return start != nullptr && awaited_.contains(start->key) && !known_(start->key);
}

void WaitingRoom::Admit(Guest guest) {
  if (const auto* start = std::get_if<ProcessStart>(&guest.observation.kind)) {
    processes_[start->key] = guest.uid;
    awaited_.insert(start->parent);
  }
  ++counts_[guest.uid];
  queue_.push_back(std::move(guest));
}

std::deque<WaitingRoom::Guest> WaitingRoom::TakeAll() {
  processes_.clear();
  awaited_.clear();
  counts_.clear();
  return std::exchange(queue_, {});
}

// Somebody new is known: whoever waited for them goes on, in order.
void WaitingRoom::Retry(Timestamp now) {
  for (Guest& guest : TakeAll()) {
    if (guest.until > now && (MustWait(guest.observation) || IsStrange(guest.observation))) {
      Admit(std::move(guest));
    } else {
      next_(guest.observation);
    }
  }
}

void WaitingRoom::ReleaseUser(uint32_t uid) {
  for (Guest& guest : TakeAll()) {
    if (guest.uid == uid) {
      next_(guest.observation);
    } else {
      Admit(std::move(guest));
    }
  }
}

void WaitingRoom::Release(Timestamp now) {
  if (!queue_.empty() && queue_.front().until <= now) Retry(now);
}

}  // namespace rankscope::exporter
