// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/gpu_charts.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "exporter/web/html.h"
#include "exporter/web/job_marks.h"

namespace rankscope::web {
namespace {

// Of a picture, in its own units; the page stretches it. The strip below the curves is for marks.
constexpr double kWidth = 240, kHeight = 48, kStrip = 4, kTop = 1;

std::string Share(float ratio) {
  return std::isfinite(ratio) ? Print("%.0f %%", 100.0 * ratio) : std::string("\u2013");
}

std::string Gibibytes(double bytes) {
  return Print("%.1f GiB", bytes / (1 << 30));
}

float Newest(std::span<const float> values) {
  return values.empty() ? static_cast<float>(GpuHistory::kNone) : values.back();
}

// One part of the axis for each value; what is absent is a gap.
std::string Line(std::span<const float> values, double top_value, bool filled) {
  const double width = kWidth / static_cast<double>(values.size());
  const auto y = [top_value](float value) {
    const double share = std::clamp(value / top_value, 0.0, 1.0);
    return Print("%.1f", kTop + (kHeight - kTop) * (1 - share));
  };
  std::string path;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const bool begins = i == 0 || !std::isfinite(values[i - 1]);
    const bool ends = i + 1 == values.size() || !std::isfinite(values[i + 1]);
    const std::string left = Print("%.1f", width * static_cast<double>(i));
    if (begins) path += "M" + left + " " + (filled ? Print("%.1f", kHeight) : y(values[i]));
    path += "L" + left + " " + y(values[i]);
    path += "H" + Print("%.1f", width * static_cast<double>(i + 1));
    if (ends && filled) path += "V" + Print("%.1f", kHeight) + "Z";
  }
  return path;
}

void OpenPicture(std::string_view title, double height, std::string& out) {
  out.append("<svg viewBox=\"0 0 ").append(Print("%g", kWidth)).append(" ");
  out.append(Print("%g", height)).append("\" preserveAspectRatio=\"none\" role=\"img\">");
  out.append("<title>").append(title).append("</title>");
}

void AppendPath(std::string_view kind, const std::string& path, std::string& out) {
  if (path.empty()) return;
  out.append("<path class=\"").append(kind).append("\" d=\"").append(path).append("\"/>");
}

void AppendRow(std::string_view name, const std::string& value, std::string& out) {
  out.append("<div class=\"axis\"><span>").append(name).append("</span><span>");
  out.append(value).append("</span></div>");
}

void AppendTimes(const std::string& from, const std::string& until, std::string& out) {
  out.append("<div class=\"axis soft\"><span>").append(from).append("</span><span>");
  out.append(until).append("</span></div>\n");
}

bool Knows(std::span<const float> values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

void AppendMemory(const GpuHistory& gpu, const JobTimeline& timeline, std::string& out) {
  if (!Knows(gpu.memory_bytes)) return AppendRow("memory", "not reported", out);
  float peak = 0;
  for (const float value : gpu.memory_bytes)
    peak = std::isfinite(value) ? std::max(peak, value) : peak;
  const bool sized = gpu.memory_total_bytes > 0;
  std::string said = "at most " + Gibibytes(peak);
  if (sized) said += " of " + Gibibytes(gpu.memory_total_bytes);
  AppendRow("memory", said, out);
  const double seconds = gpu.memory_part_seconds * static_cast<double>(gpu.memory_bytes.size());
  const double end = gpu.memory_begin_wall_seconds + seconds;
  OpenPicture("memory used over the run, " + said, kHeight, out);
  AppendPath("suspended",
             SuspendedBands(timeline, gpu.memory_begin_wall_seconds, end, kWidth, kHeight), out);
  AppendPath("memory", Line(gpu.memory_bytes, sized ? gpu.memory_total_bytes : peak, true), out);
  out.append("</svg>");
  AppendTimes(TimeText(gpu.memory_begin_wall_seconds, "%H:%M") + " begin",
              TimeText(end, "%H:%M") + " after " + LengthText(seconds), out);
}

struct Mark {
  double share = 0;  // of the hour
  int32_t code = 0;
};

std::vector<Mark> MarksOf(const GpuHistory& gpu,
                          const std::vector<metrics::SourceStatus>& sources) {
  constexpr double kHour = 60.0 * GpuHistory::kMinutes;
  std::vector<Mark> marks;
  for (const metrics::SourceStatus& source : sources) {
    for (const metrics::XidStatus& xid : source.xids) {
      if (gpu.card.empty() || xid.card != gpu.card) continue;
      const double age = gpu.minutes_end_wall_seconds - xid.last_wall_seconds;
      constexpr size_t kMost = 16;
      // A GPU that does not answer is no longer polled, but the driver still reports its errors.
      if (age < kHour && marks.size() < kMost)
        marks.push_back({std::clamp(1 - age / kHour, 0.0, 1.0), xid.code});
    }
  }
  return marks;
}

void AppendMarks(const GpuHistory& gpu, const std::vector<Mark>& marks, std::string& out) {
  const double width = kWidth / static_cast<double>(std::max<size_t>(1, gpu.throttled.size()));
  std::string strip;
  for (size_t i = 0; i < gpu.throttled.size(); ++i) {
    if (!(gpu.throttled[i] > 0)) continue;
    strip += "M" + Print("%.1f", width * static_cast<double>(i)) + " " + Print("%g", kHeight) +
             "h" + Print("%.1f", width) + "v" + Print("%g", kStrip) + "h" + Print("%.1f", -width) +
             "Z";
  }
  AppendPath("throttled", strip, out);
  std::string lines;
  for (const Mark& mark : marks)
    lines += "M" + Print("%.1f", mark.share * kWidth) + " 0V" + Print("%g", kHeight + kStrip);
  AppendPath("xid", lines, out);
}

// What the marks mean, in words: a colour alone explains nothing.
std::string Told(const GpuHistory& gpu, const std::vector<Mark>& marks) {
  const auto minutes = std::count_if(gpu.throttled.begin(), gpu.throttled.end(),
                                     [](float share) { return share > 0; });
  std::string said;
  if (minutes > 0) {
    said += "<span class=\"warning\">clocks limited by heat or power in " +
            std::to_string(minutes) + (minutes == 1 ? " minute" : " minutes") + "</span>";
  }
  if (marks.empty()) return said;
  said += said.empty() ? "" : ", ";
  said += "<span class=\"critical\">Xid";
  for (const Mark& mark : marks) said += " " + std::to_string(mark.code);
  return said + "</span>";
}

void AppendActivity(const GpuHistory& gpu, const JobTimeline& timeline,
                    const std::vector<metrics::SourceStatus>& sources, std::string& out) {
  const std::vector<Mark> marks = MarksOf(gpu, sources);
  const bool known = Knows(gpu.engine) || Knows(gpu.sm);
  if (!known && marks.empty()) return AppendRow("engine and SMs", "not reported", out);
  const std::string now = "engine " + Share(Newest(gpu.engine)) + ", SMs " + Share(Newest(gpu.sm));
  AppendRow("<span class=\"engine\">engine</span> and <span class=\"sm\">SMs</span>",
            Share(Newest(gpu.engine)) + " and " + Share(Newest(gpu.sm)), out);
  OpenPicture("activity of engine and SMs in the last hour; in the last minute " + now,
              kHeight + kStrip, out);
  const double newest = gpu.minutes_end_wall_seconds;
  AppendPath("suspended",
             SuspendedBands(timeline, newest - 60.0 * GpuHistory::kMinutes, newest, kWidth,
                            kHeight + kStrip),
             out);
  if (Knows(gpu.sm)) AppendPath("sm", Line(gpu.sm, 1, true), out);
  if (Knows(gpu.engine)) AppendPath("engine", Line(gpu.engine, 1, false), out);
  AppendMarks(gpu, marks, out);
  out.append("</svg>");
  const std::string end = TimeText(gpu.minutes_end_wall_seconds, "%H:%M");
  AppendTimes(TimeText(gpu.minutes_end_wall_seconds - 60.0 * GpuHistory::kMinutes, "%H:%M") +
                  " one hour earlier",
              end, out);
  const std::string told = Told(gpu, marks);
  if (!told.empty()) out.append("<p class=\"told\">").append(told).append("</p>");
}

// As much of it as identifies a GPU: GPU-fa4e0003.
std::string Short(std::string_view uuid) {
  constexpr size_t kPrefix = 12;
  std::string out;
  AppendEscaped(uuid.substr(0, kPrefix), out);
  return out;
}

void AppendCaption(const GpuHistory& gpu, std::string& out) {
  out.append("<figcaption><b>GPU ");
  out.append(gpu.index >= 0 ? std::to_string(gpu.index) : std::string("?")).append("</b> ");
  constexpr size_t kRanks = 8;
  for (size_t i = 0; i < std::min(kRanks, gpu.ranks.size()); ++i) {
    out.append(i > 0 ? ", " : gpu.ranks.size() > 1 ? "ranks " : "rank ");
    out.append(std::to_string(gpu.ranks[i]));
  }
  if (gpu.ranks.size() > kRanks) out.append(" and more");
  out.append(" <code>").append(Short(gpu.uuid)).append("</code> <span class=\"soft\">");
  AppendEscaped(gpu.model, out);
  out.append("</span>");
  if (!gpu.state.empty() && gpu.state != "up") {
    out.append(" <span class=\"critical\">");
    AppendEscaped(gpu.state, out);
    out.append("</span>");
  }
  out.append("</figcaption>\n");
}

}  // namespace

void AppendGpuCharts(const JobStatus& job, const std::vector<metrics::SourceStatus>& sources,
                     std::string& out) {
  if (job.gpu_history.empty()) return;
  out.append("<h2>GPUs</h2><div class=\"gpus\">\n");
  for (const GpuHistory& gpu : job.gpu_history) {
    out.append("<figure>");
    AppendCaption(gpu, out);
    AppendMemory(gpu, job.timeline, out);
    AppendActivity(gpu, job.timeline, sources, out);
    out.append("</figure>\n");
  }
  out.append("</div>\n");
}

}  // namespace rankscope::web
