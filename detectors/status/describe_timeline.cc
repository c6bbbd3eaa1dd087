// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/status/describe_timeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "detectors/model/slurm_report.h"

namespace rankscope::status {
namespace {

using windows::JobWindow;

class Timeline {
 public:
  Timeline(const JobWindow& job, const proto::Verdict& verdict, int64_t wall_offset_ns)
      : job_(job), verdict_(verdict), wall_offset_ns_(wall_offset_ns) {}

  JobTimeline Run(Timestamp now) {
    AddAttempts();
    AddSuspensions(now);
    AddScheduler();
    AddChanges();
    std::stable_sort(out_.marks.begin(), out_.marks.end(),
                     [](const auto& a, const auto& b) { return a.wall_seconds < b.wall_seconds; });
    return std::move(out_);
  }

 private:
  double Wall(Timestamp t) const { return static_cast<double>(t.ns + wall_offset_ns_) * 1e-9; }

  void Mark(Timestamp t, std::string_view kind, std::string text = {}) {
    out_.marks.push_back({Wall(t), kind, std::move(text)});
  }

  std::string CodeOf(int32_t attempt) const {
    for (const proto::AttemptSummary& summary : verdict_.attempts()) {
      if (summary.attempt().ordinal() == attempt) return summary.code();
    }
    return {};
  }

  void AddAttempts() {
    Mark(job_.attempt_spans().empty() ? job_.begin() : job_.attempt_spans().front().begin, "began",
         job_.attempt_spans().empty()
             ? std::string()
             : "attempt " + std::to_string(job_.attempt_spans().front().attempt.ordinal));
    for (const windows::AttemptSpan& span : job_.attempt_spans()) {
      if (&span != &job_.attempt_spans().front())
        Mark(span.begin, "restarted", "attempt " + std::to_string(span.attempt.ordinal));
      out_.spans.push_back({Wall(span.begin), Wall(span.end), false, span.attempt.ordinal,
                            CodeOf(span.attempt.ordinal)});
    }
    if (!job_.attempt_spans().empty())
      Mark(job_.now().begin, "restarted", "attempt " + std::to_string(job_.attempt().ordinal));
    const bool ended = job_.end().ended;
    out_.spans.push_back({Wall(job_.now().begin), ended ? Wall(job_.end().t) : kUnknown, false,
                          job_.attempt().ordinal, ended ? verdict_.code() : std::string()});
    if (ended) Mark(job_.end().t, "ended", verdict_.code());
  }

  void AddSuspensions(Timestamp now) {
    const windows::SuspensionTracker& tracker = job_.suspension();
    const auto by = [](const windows::Suspension& span) {
      return static_cast<windows::SuspendedBy>(span.by) == windows::SuspendedBy::kFreezer
                 ? "its cgroup was frozen"
                 : "its processes were stopped by a signal";
    };
    for (const windows::Suspension& span : tracker.past()) {
      Mark(span.begin, "suspended", by(span));
      Mark(span.end, "resumed");
      out_.spans.push_back({Wall(span.begin), Wall(span.end), true, 0, {}});
    }
    if (!tracker.Suspended(now)) return;
    Mark(tracker.current().begin, "suspended", by(tracker.current()));
    out_.spans.push_back({Wall(tracker.current().begin), kUnknown, true, 0, {}});
  }

  static std::string_view KindOf(const windows::SchedulerMark& mark) {
    if (mark.field == "submit") return "submitted";
    if (mark.field == "start") return "started";
    for (const std::string_view kind : kSlurmEventKinds) {
      if (mark.field == "event" && mark.value == kind) return kind;
    }
    return "told";
  }

  void AddChanges() {
    for (const proto::Change& change : verdict_.history()) {
      out_.marks.push_back({static_cast<double>(change.at_ns()) * 1e-9, "judged",
                            change.from() + " became " + change.to() +
                                (change.why().empty() ? "" : ": " + change.why())});
    }
  }

  void AddScheduler() {
    for (const windows::SchedulerMark& mark : job_.scheduler_marks()) {
      const std::string_view kind = KindOf(mark);
      std::string text = kind == mark.value ? std::string() : mark.value;
      if (!mark.reason.empty()) text += (text.empty() ? "" : ", ") + mark.reason;
      if (!mark.origin.empty()) text += (text.empty() ? "says " : ", says ") + mark.origin;
      Mark(mark.t, kind, std::move(text));
    }
  }

  const JobWindow& job_;
  const proto::Verdict& verdict_;
  int64_t wall_offset_ns_;
  JobTimeline out_;
};

}  // namespace

JobTimeline DescribeTimeline(const JobWindow& job, const proto::Verdict& verdict,
                             int64_t wall_offset_ns, Timestamp now) {
  if (wall_offset_ns == 0) return {};
  return Timeline(job, verdict, wall_offset_ns).Run(now);
}

}  // namespace rankscope::status
