// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/node_page.h"

#include <string_view>

#include "detectors/document/verdict_words.h"
#include "detectors/model/gpu_reading.h"
#include "exporter/web/html.h"
#include "exporter/web/job_marks.h"
#include "exporter/web/shell.h"

namespace rankscope::web {
namespace {

struct StateWord {
  std::string_view word, kind;
};
StateWord WordOf(GpuState state) {
  switch (state) {
    case GpuState::kUp:
      return {"up", "ok"};
    case GpuState::kUnresponsive:
      return {"does not answer", "critical"};
    case GpuState::kLost:
      return {"lost", "critical"};
    case GpuState::kDenied:
      return {"not permitted", "none"};
    case GpuState::kFailed:
      return {"answers errors only", "critical"};
    case GpuState::kNotLookedAt:
      break;
  }
  return {"not looked at yet", "none"};
}

std::string Text(const GpuValue& value, double scale = 1) {
  return NumberText(value ? *value / scale : kUnknown);
}

std::string Uncorrected(const GpuReading& reading) {
  constexpr size_t kUncorrected = 1, kVolatile = 0;
  return Text(reading.ecc_total[kUncorrected][kVolatile]);
}

void AppendGpu(const GpuStatus& gpu, std::string& out) {
  constexpr std::string_view kNumber = " class=\"number\"";
  constexpr double kGiB = 1 << 30;
  const GpuReading& r = gpu.reading;
  const StateWord state = WordOf(gpu.state);
  out.append("<tr><th scope=\"row\">").append(std::to_string(gpu.identity.index)).append("</th>");
  AppendCell("", Escaped(gpu.identity.model), out);
  AppendCell("", Escaped(gpu.identity.uuid), out);
  AppendCell("", Escaped(gpu.identity.serial), out);
  out.append("<td class=\"").append(state.kind).append("\">").append(state.word);
  if (!gpu.reason.empty()) out.append(": ").append(Escaped(gpu.reason));
  out.append("</td>");
  AppendCell(kNumber, Text(r.memory_used_bytes, kGiB) + " / " + Text(r.memory_total_bytes, kGiB),
             out);
  AppendCell(kNumber, Text(r.engine_active), out);
  AppendCell(kNumber, Text(r.sm_active), out);
  AppendCell(kNumber, Text(r.temperature_celsius), out);
  AppendCell(kNumber, Text(r.power_watts), out);
  AppendCell(kNumber, Uncorrected(r), out);
  AppendCell(kNumber, Text(r.remap_pending), out);
  out.append("</tr>\n");
}

void AppendGpus(const metrics::AgentStatus& agent, std::string& out) {
  bool any = false;
  for (const metrics::SourceStatus& source : agent.sources) {
    if (source.gpus == nullptr || source.gpus->empty()) continue;
    if (!any) {
      out.append(
          "<h2>GPUs</h2>\n<div class=\"card wide\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"GPUs\"><table><thead><tr><th>GPU</th><th>Model</th><th>UUID</th>"
          "<th>Serial</th><th>State</th><th class=\"number\">Memory, GiB</th>"
          "<th class=\"number\">Engine</th><th class=\"number\">SM</th>"
          "<th class=\"number\">\u00b0C</th><th class=\"number\">W</th>"
          "<th class=\"number\">Uncorrected</th><th class=\"number\">Remaps pending</th></tr>"
          "</thead><tbody>\n");
    }
    any = true;
    for (const GpuStatus& gpu : *source.gpus) AppendGpu(gpu, out);
  }
  if (any) out.append("</tbody></table></div>\n");
}

void AppendSources(const metrics::AgentStatus& agent, std::string& out) {
  out.append(
      "<h2>Sources</h2>\n<div class=\"card wide\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"Sources\"><table><thead><tr><th>Source</th><th>State</th>"
      "<th class=\"number\">Observations</th><th class=\"number\">Lost</th><th>Reason and remedy"
      "</th></tr></thead><tbody>\n");
  for (const metrics::SourceStatus& source : agent.sources) {
    const bool up = source.state == Availability::kUp;
    const bool down = source.state == Availability::kDown || source.state == Availability::kStale;
    out.append("<tr><th scope=\"row\">").append(Escaped(source.name)).append("</th><td class=\"");
    out.append(up ? "ok" : down ? "critical" : "none").append("\">");
    out.append(SourceWord(static_cast<proto::Availability>(source.state))).append("</td>");
    AppendCell(" class=\"number\"", std::to_string(source.observations), out);
    AppendCell(" class=\"number\"", std::to_string(source.lost), out);
    AppendCell(" class=\"text\"", Escaped(source.reason), out);
    out.append("</tr>\n");
  }
  out.append("</tbody></table></div>\n");
}

}  // namespace

std::string NodePage(const metrics::Published& published) {
  std::string out;
  BeginPage("Node " + published.agent.node + " \u2013 rankscope", published, out);
  out.append("<h1>Node ").append(Escaped(published.agent.node)).append("</h1>\n");
  AppendGpus(published.agent, out);
  AppendSources(published.agent, out);
  for (const metrics::SourceStatus& source : published.agent.sources) {
    if (source.slurm != nullptr) AppendSlurmJobs(*source.slurm, published.wall_seconds, out);
  }
  out.append(
      "<p>More: <a href=\"/config\">configuration</a> <a href=\"/metrics\">metrics</a> "
      "<a href=\"/-/ready\">readiness</a></p>\n");
  EndPage(published, out);
  return out;
}

}  // namespace rankscope::web
