// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/job_marks.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/web/html.h"

namespace rankscope::web {
namespace {

// Of the strip, in its own units; the page stretches it. Marks reach above the bands.
constexpr double kWidth = 240, kHeight = 20, kBandTop = 5;
// A stretch of a second in a run of a week is still to be seen.
constexpr double kLeastWidth = 0.6;
constexpr size_t kListed = 12;  // marks in words; the earlier ones are folded
constexpr size_t kSlurmJobs = 20;

std::string Band(double left, double right, double top, double bottom) {
  return "M" + Print("%.1f", left) + " " + Print("%g", top) + "H" + Print("%.1f", right) + "V" +
         Print("%g", bottom) + "H" + Print("%.1f", left) + "Z";
}

struct Range {
  double from = 0, until = 0;

  double X(double wall_seconds) const {
    return kWidth * std::clamp((wall_seconds - from) / (until - from), 0.0, 1.0);
  }
};

Range RangeOf(const JobTimeline& timeline, double now) {
  Range range{INFINITY, -INFINITY};
  const auto take = [&range](double seconds) {
    if (!std::isfinite(seconds)) return;
    range.from = std::min(range.from, seconds);
    range.until = std::max(range.until, seconds);
  };
  for (const JobMark& mark : timeline.marks) take(mark.wall_seconds);
  for (const JobSpan& span : timeline.spans) {
    take(span.from_wall_seconds);
    take(std::isnan(span.until_wall_seconds) ? now : span.until_wall_seconds);
  }
  range.until = std::max(range.until, range.from + 1);
  return range;
}

void AppendPath(std::string_view kind, const std::string& path, std::string& out) {
  if (path.empty()) return;
  out.append("<path class=\"").append(kind).append("\" d=\"").append(path).append("\"/>");
}

// One attempt beside the next: that of what failed, of what did not, and of what is not judged.
void AppendBands(const JobTimeline& timeline, const Range& range, double now, std::string& out) {
  std::string went, failed, suspended;
  for (const JobSpan& span : timeline.spans) {
    if (!std::isfinite(span.from_wall_seconds)) continue;
    const double until = std::isnan(span.until_wall_seconds) ? now : span.until_wall_seconds;
    const double left = std::min(range.X(span.from_wall_seconds), kWidth - kLeastWidth);
    const double right = std::max(range.X(until), left + kLeastWidth);
    const bool bad = !span.code.empty() && span.code != "G1";
    std::string& path = span.suspended ? suspended : bad ? failed : went;
    path += Band(left, right, kBandTop, kHeight);
  }
  AppendPath("went", went, out);
  AppendPath("failed", failed, out);
  AppendPath("suspended", suspended, out);
}

std::string Summary(const JobTimeline& timeline, double now) {
  size_t attempts = 0;
  double suspended = 0;
  for (const JobSpan& span : timeline.spans) {
    if (!span.suspended) ++attempts;
    if (!span.suspended) continue;
    const double until = std::isnan(span.until_wall_seconds) ? now : span.until_wall_seconds;
    suspended += std::max(0.0, until - span.from_wall_seconds);
  }
  std::string said = std::to_string(attempts) + (attempts == 1 ? " attempt" : " attempts");
  if (suspended > 0) said += ", suspended for " + LengthText(suspended);
  return said;
}

void AppendStrip(const JobTimeline& timeline, const Range& range, double now, std::string& out) {
  const std::string said = Summary(timeline, now);
  out.append("<svg class=\"strip\" viewBox=\"0 0 ").append(Print("%g", kWidth)).append(" ");
  out.append(Print("%g", kHeight)).append("\" preserveAspectRatio=\"none\" role=\"img\"><title>");
  out.append("timeline of the job: ").append(said).append("; listed below</title>");
  AppendBands(timeline, range, now, out);
  std::string lines;
  for (const JobMark& mark : timeline.marks) {
    if (!std::isfinite(mark.wall_seconds)) continue;
    const double x = std::clamp(range.X(mark.wall_seconds), 0.5, kWidth - 0.5);
    lines += "M" + Print("%.1f", x) + " 0V" + Print("%g", kHeight);
  }
  AppendPath("mark", lines, out);
  out.append("</svg><div class=\"axis soft\"><span>").append(TimeText(range.from, "%H:%M:%S"));
  out.append(" UTC</span><span>").append(said).append("</span><span>");
  out.append(TimeText(range.until, "%H:%M:%S")).append(" after ");
  out.append(LengthText(range.until - range.from)).append("</span></div>\n");
}

void AppendMark(const JobMark& mark, bool days, std::string& out) {
  out.append("<li><time datetime=\"").append(TimeText(mark.wall_seconds, "%Y-%m-%dT%H:%M:%SZ"));
  out.append("\">").append(TimeText(mark.wall_seconds, days ? "%m-%d %H:%M:%S" : "%H:%M:%S"));
  out.append("</time> <b>");
  AppendEscaped(mark.kind, out);
  out.append("</b>");
  if (!mark.text.empty()) {
    out.append(" <span class=\"soft\">");
    AppendEscaped(mark.text, out);
    out.append("</span>");
  }
  out.append("</li>\n");
}

void AppendWords(const std::vector<JobMark>& marks, bool days, std::string& out) {
  const size_t folded = marks.size() > kListed ? marks.size() - kListed : 0;
  if (folded > 0) {
    out.append("<details id=\"earlier-marks\"><summary>").append(std::to_string(folded));
    out.append(" earlier</summary>");
    out.append("<ol class=\"marks\">\n");
    for (size_t i = 0; i < folded; ++i) AppendMark(marks[i], days, out);
    out.append("</ol></details>\n");
  }
  out.append("<ol class=\"marks\">\n");
  for (size_t i = folded; i < marks.size(); ++i) AppendMark(marks[i], days, out);
  out.append("</ol>\n");
}

void AppendStripAndWords(const JobTimeline& timeline, double now, std::string& out) {
  constexpr double kDay = 20 * 3600;  // in longer ones the hour alone does not identify the day
  const Range range = RangeOf(timeline, now);
  AppendStrip(timeline, range, now, out);
  AppendWords(timeline.marks, range.until - range.from > kDay, out);
}

// Of one job, oldest first.
JobTimeline TimelineOf(const std::vector<const SlurmEvent*>& events) {
  JobTimeline timeline;
  const auto last = [&timeline](bool suspended) -> JobSpan* {
    for (auto it = timeline.spans.rbegin(); it != timeline.spans.rend(); ++it) {
      if (it->suspended == suspended) return std::isnan(it->until_wall_seconds) ? &*it : nullptr;
    }
    return nullptr;
  };
  int32_t attempts = 0;
  for (const SlurmEvent* event : events) {
    const double t = static_cast<double>(event->wall_ns) * 1e-9;
    std::string text = event->reason;
    if (event->kind == "updated") text = event->was + " \u2192 " + event->is;
    timeline.marks.push_back({t, event->kind, std::move(text)});
    const bool waits =
        event->kind == "submitted" || event->kind == "blocked" || event->kind == "updated";
    if (event->kind == "started") {
      timeline.spans.push_back({t, kUnknown, false, ++attempts, {}});
    } else if (event->kind == "suspended") {
      timeline.spans.push_back({t, kUnknown, true, attempts, {}});
    } else if (!waits) {
      if (JobSpan* open = last(true)) open->until_wall_seconds = t;
      if (JobSpan* open = last(false); open != nullptr && event->kind != "resumed") {
        open->until_wall_seconds = t;
        open->code = event->kind == "completed" ? "G1" : event->kind;
      }
    }
  }
  return timeline;
}

}  // namespace

std::string SuspendedBands(const JobTimeline& timeline, double from, double until, double width,
                           double height) {
  std::string path;
  if (!(until > from)) return path;
  for (const JobSpan& span : timeline.spans) {
    if (!span.suspended) continue;
    const double end = std::isnan(span.until_wall_seconds) ? until : span.until_wall_seconds;
    if (span.from_wall_seconds >= until || end <= from) continue;
    const auto x = [&](double t) {
      return width * std::clamp((t - from) / (until - from), 0.0, 1.0);
    };
    path += Band(x(span.from_wall_seconds),
                 std::max(x(end), x(span.from_wall_seconds) + kLeastWidth), 0, height);
  }
  return path;
}

void AppendTimeline(const JobTimeline& timeline, double now_wall_seconds, std::string& out) {
  if (timeline.marks.empty()) return;
  out.append("<h2>Timeline</h2>\n");
  AppendStripAndWords(timeline, now_wall_seconds, out);
}

void AppendSlurmJobs(const SlurmReport& report, double now_wall_seconds, std::string& out) {
  if (report.events == nullptr || report.events->empty()) return;
  std::vector<std::string_view> jobs;  // by their newest event
  for (auto it = report.events->rbegin(); it != report.events->rend(); ++it) {
    const std::string& id = (*it)->job_id;
    if (id.empty() || std::find(jobs.begin(), jobs.end(), id) != jobs.end()) continue;
    if (jobs.size() == kSlurmJobs) break;
    jobs.push_back(id);
  }
  if (jobs.empty()) return;
  out.append("<h2>Jobs of Slurm</h2>\n");
  for (const std::string_view id : jobs) {
    std::vector<const SlurmEvent*> events;
    for (const auto& event : *report.events) {
      if (event->job_id == id) events.push_back(event.get());
    }
    std::stable_sort(events.begin(), events.end(), [](const SlurmEvent* a, const SlurmEvent* b) {
      return a->wall_ns < b->wall_ns;
    });
    constexpr size_t kMost = 48;  // of a job that is requeued all night, the newest
    if (events.size() > kMost)
      events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(kMost));
    out.append("<section class=\"card\"><p class=\"title\"><b>");
    AppendEscaped(id, out);
    out.append("</b></p>\n");
    AppendStripAndWords(TimelineOf(events), now_wall_seconds, out);
    out.append("</section>\n");
  }
}

}  // namespace rankscope::web
