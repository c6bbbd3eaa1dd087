// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/suspension_tracker.h"

#include <algorithm>

#include "detectors/model/event_types.h"
#include "detectors/model/wait_class.h"

namespace rankscope::windows {
namespace {

// States come each second. Of a source that tells no more nothing is known after this.
constexpr Duration kFresh = Seconds(10);

bool Is(const KeyValue& pair, std::string_view key, std::string_view value) {
  return pair.key == key && pair.value == value;
}

}  // namespace

void SuspensionTracker::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  if (batch.subject.kind != Subject::Kind::kProcess || speaker.process.pid == 0) return;
  int frozen = -1, stopped = -1;
  Duration waited;
  for (const Sample& sample : batch.samples) {
    constexpr double kStoppedState = 3;
    if (sample.signal == SignalId::kProcessFrozen) frozen = sample.value > 0 ? 1 : 0;
    if (sample.signal == SignalId::kProcessState) stopped = sample.value == kStoppedState ? 1 : 0;
    if (sample.signal == SignalId::kMainWaitClass)
      stopped = WaitClassOf(sample.value) == WaitClass::kStopped ? 1 : 0;
    if (sample.signal == SignalId::kMainWaitSeconds)
      waited = Seconds(std::clamp(sample.value, 0.0, 1e9));
  }
  if (frozen < 0 && stopped < 0) return;
  last_ = std::max(last_, t);
  if (processes_.size() >= kMostProcesses && !processes_.contains(speaker.process)) return;
  const auto [found, fresh] = processes_.try_emplace(speaker.process);
  Process& process = found->second;
  const Process before = process;
  process.ranked = speaker.rank >= 0;
  if (frozen >= 0) process.frozen = frozen == 1;
  if (stopped >= 0) process.stopped = stopped == 1;
  if (!process.stopped) process.traced = false;
  if (!process.frozen && !process.stopped) {
    process.since = {};
  } else if (process.since.ns == 0) {
    process.since = process.frozen ? t : t - waited;
  }
  const bool changed = before.ranked != process.ranked || before.frozen != process.frozen ||
                       before.stopped != process.stopped;
  if (changed || fresh) Judge(t);
}

void SuspensionTracker::OnEvent(const Event& event, Timestamp t) {
  if (event.type != WireType(EventType::kThreadStopped)) return;
  const auto found = processes_.find(event.process);
  if (found == processes_.end()) return;
  found->second.traced = std::any_of(event.str.begin(), event.str.end(), [](const KeyValue& pair) {
    return Is(pair, "what", "traced");
  });
  Judge(t);
}

void SuspensionTracker::OnProcessGone(const ProcessKey& key, Timestamp t) {
  if (processes_.erase(key) > 0) Judge(t);
}

SuspensionTracker::Count SuspensionTracker::CountThose(bool Process::*which) const {
  Count count;
  for (const auto& [key, process] : processes_) {
    if (!(process.*which)) continue;
    ++count.all;
    if (process.ranked) ++count.ranks;
    count.since = std::max(count.since, process.since);
  }
  return count;
}

// A frozen cgroup is nobody's accident. A signal is meant for the job where it has stopped every
// rank of several, or all that there is of the job, whoever started its only rank included.
void SuspensionTracker::Judge(Timestamp t) {
  int32_t ranks = 0;
  bool traced = false;
  for (const auto& [key, process] : processes_) {
    ranks += process.ranked ? 1 : 0;
    traced = traced || process.traced;
  }
  const auto all = static_cast<int32_t>(processes_.size());
  const auto whole = [ranks, all](const Count& count) {
    return ranks > 0 ? count.ranks == ranks : all > 0 && count.all == all;
  };
  const Count frozen = CountThose(&Process::frozen);
  const Count stopped = CountThose(&Process::stopped);
  SuspendedBy by = SuspendedBy::kNobody;
  if (whole(frozen)) {
    by = SuspendedBy::kFreezer;
  } else if (whole(stopped) && !traced && (ranks > 1 || (all > 1 && stopped.all == all))) {
    by = SuspendedBy::kSignal;
  }
  if (by == SuspendedBy::kNobody) return End(t);
  const Count& count = by == SuspendedBy::kFreezer ? frozen : stopped;
  if (current_.by == 0) current_.begin = count.since;
  current_.by = static_cast<uint8_t>(by);
  current_.processes = count.all;
}

void SuspensionTracker::End(Timestamp t) {
  if (current_.by == 0) return;
  current_.end = std::max(current_.begin, t);
  total_ = total_ + (current_.end - current_.begin);
  ++times_;
  past_.push_back(current_);
  if (past_.size() > kMostSpans) past_.pop_front();
  current_ = {};
}

Timestamp SuspensionTracker::KnownUntil(Timestamp now) const {
  return std::min(now, last_ + kFresh);
}

bool SuspensionTracker::Suspended(Timestamp now) const {
  return current_.by != 0 && now <= last_ + kFresh;
}

Duration SuspensionTracker::Within(Timestamp from, Timestamp to) const {
  Duration within;
  const auto add = [&](Timestamp begin, Timestamp end) {
    begin = std::max(begin, from);
    end = std::min(end, to);
    if (end > begin) within = within + (end - begin);
  };
  for (const Suspension& span : past_) add(span.begin, span.end);
  if (current_.by != 0) add(current_.begin, KnownUntil(to));
  return within;
}

Duration SuspensionTracker::Total(Timestamp now) const {
  if (current_.by == 0) return total_;
  const Duration open = KnownUntil(now) - current_.begin;
  return open.ns > 0 ? total_ + open : total_;
}

}  // namespace rankscope::windows
