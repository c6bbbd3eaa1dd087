// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/hearing.h"

#include <algorithm>
#include <array>

namespace rankscope::windows {
namespace {

// Sources come up one after the other, and a job that is there already is met by the first.
constexpr Duration kTogether = Seconds(2);

// What they would have told is told when they are back: somebody else keeps it. And the run's own
// log is nothing that is listened to: its bytes were heard before they were written there.
bool IsKeptElsewhere(std::string_view source) {
  constexpr std::array<std::string_view, 5> kNames = {"slurm", "job_mapping", "nccl_ras", "fleet",
                                                      "run_log"};
  return std::find(kNames.begin(), kNames.end(), source) != kNames.end();
}

bool IsGone(Availability state) {
  return state == Availability::kDown || state == Availability::kStale ||
         state == Availability::kDenied || state == Availability::kUnsupported;
}

}  // namespace

void Hearing::OnSpan(Timestamp begin, Timestamp end, UnheardWhy why) {
  begin = std::max(begin, begin_);
  // Spans come in order; one that is met again, or grows, is one.
  if (!spans_.empty()) {
    UnheardSpan& newest = spans_.back();
    if (newest.why == static_cast<uint8_t>(why) && begin <= newest.end) {
      if (end <= newest.end) return;
      total_ = total_ + (end - newest.end);
      newest.end = end;
      return;
    }
    begin = std::max(begin, newest.end);
  }
  if (end <= begin) return;
  spans_.push_back({begin, end, static_cast<uint8_t>(why), false});
  if (spans_.size() > kMostSpans) spans_.pop_front();
  ++times_;
  total_ = total_ + (end - begin);
}

SourceGap* Hearing::FindOrAdd(std::string_view name) {
  name = name.substr(0, kNameCap);
  const auto found = std::find_if(sources_.begin(), sources_.end(),
                                  [name](const SourceGap& gap) { return gap.name == name; });
  if (found != sources_.end()) return &*found;
  if (sources_.size() >= kMostSources) return nullptr;
  SourceGap& gap = sources_.emplace_back();
  gap.name = name;
  return &gap;
}

void Hearing::OnSource(const SourceState* before, const SourceState& now, Timestamp t) {
  if (IsKeptElsewhere(now.name)) return;
  // A source that was started anew counts from zero.
  const int64_t known = before == nullptr ? 0 : before->lost_untold;
  const int64_t lost = now.lost_untold >= known ? now.lost_untold - known : now.lost_untold;
  // What it had lost when it was first heard of was lost before the job began.
  if (lost > 0 && (before != nullptr || t - begin_ > kTogether)) {
    if (SourceGap* gap = FindOrAdd(now.name)) gap->lost += lost;
  }
  const Availability was = before == nullptr ? Availability::kUnspecified : before->state;
  if (was == Availability::kUp && IsGone(now.state)) {
    SourceGap* gap = FindOrAdd(now.name);
    if (gap == nullptr) return;
    if (!gap->was_absent()) gap->first = t;
    gap->since = t;
  } else if (now.state == Availability::kUp && was != Availability::kUp) {
    const auto open = std::find_if(sources_.begin(), sources_.end(), [&now](const SourceGap& gap) {
      return gap.name == now.name && gap.since.ns != 0;
    });
    if (open != sources_.end()) {
      open->total = open->total + (t - open->since);
      open->since = {};
    } else if (t - begin_ > kTogether && was != Availability::kNotApplicable) {
      SourceGap* gap = FindOrAdd(now.name);
      if (gap == nullptr || gap->was_absent()) return;
      gap->late = true;
      gap->first = begin_;
      gap->total = t - begin_;
    }
  }
}

Duration Hearing::Within(Timestamp from, Timestamp to) const {
  Duration within;
  for (const UnheardSpan& span : spans_) {
    const Timestamp begin = std::max(span.begin, from);
    const Timestamp end = std::min(span.end, to);
    if (end > begin) within = within + (end - begin);
  }
  return within;
}

Duration Hearing::StoppedWithin(Timestamp from, Timestamp to) const {
  Duration within;
  for (const UnheardSpan& span : spans_) {
    if (span.why != static_cast<uint8_t>(UnheardWhy::kStopped)) continue;
    const Timestamp begin = std::max(span.begin, from);
    const Timestamp end = std::min(span.end, to);
    if (end > begin) within = within + (end - begin);
  }
  return within;
}

bool Hearing::Near(Timestamp t, Duration margin) const {
  return !spans_.empty() && spans_.back().end + margin >= t && spans_.back().begin <= t;
}

}  // namespace rankscope::windows
