// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/status_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "detectors/model/hidden_text.h"
#include "detectors/model/percent_encode.h"
#include "exporter/web/gpu_charts.h"
#include "exporter/web/job_marks.h"
#include "exporter/web/style.h"

namespace rankscope::web {
namespace {

constexpr std::string_view kAbsent = "\u2013";

std::string Escaped(std::string_view text) {
  std::string out;
  AppendEscaped(text, out);
  return out;
}

// Six digits are more than a reader compares; absent numbers are a dash, those that the job printed
// as nan are nan.
std::string Number(double value, bool present) {
  if (!present) return std::string(kAbsent);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}
std::string Number(double value) {
  return Number(value, !std::isnan(value));
}

// A class of the style sheet; the words of a verdict are never used as one directly.
std::string_view SeverityClass(const proto::Verdict& verdict) {
  for (const std::string_view known : {"ok", "info", "warning", "critical"}) {
    if (verdict.triage().severity() == known) return known;
  }
  return "none";
}

std::string Anchor(size_t index) {
  return "job-" + std::to_string(index + 1);
}

void AppendChip(const proto::Verdict& verdict, std::string& out) {
  out.append("<span class=\"chip ").append(SeverityClass(verdict)).append("\">");
  if (verdict.code().empty()) {
    out.append("no verdict yet");
  } else {
    out.append(Escaped(verdict.code())).append(" ").append(Escaped(verdict.family()));
    if (!verdict.sub().empty()) out.append(" / ").append(Escaped(verdict.sub()));
  }
  out.append("</span>");
}

void AppendCell(std::string_view kind, std::string_view html, std::string& out) {
  out.append("<td").append(kind).append(">").append(html).append("</td>");
}

void AppendJobRow(const JobStatus& job, size_t index, std::string& out) {
  constexpr std::string_view kNumber = " class=\"number\"";
  const proto::Verdict& verdict = job.verdict;
  const JobSignals& signals = job.signals;
  const double loss = signals[SignalId::kLoss];
  std::string chip;
  AppendChip(verdict, chip);
  const std::string ratio = Number(verdict.confidence());
  std::string step = Number(signals[SignalId::kStep]);
  if (!std::isnan(signals[SignalId::kMaxSteps]))
    step.append(" / ").append(Number(signals[SignalId::kMaxSteps]));
  out.append("<tr>");
  AppendCell("", "<a href=\"#" + Anchor(index) + "\">" + Escaped(job.job_id) + "</a>", out);
  AppendCell("", chip, out);
  AppendCell(
      "", "<meter min=\"0\" max=\"1\" value=\"" + ratio + "\"></meter> " + ConfidenceWords(verdict),
      out);
  AppendCell("", Word(verdict.state()), out);
  AppendCell("", Word(verdict.phase()), out);
  AppendCell(kNumber, step, out);
  AppendCell(kNumber, Number(loss, !std::isnan(loss) || job.training.nonfinite_loss > 0), out);
  AppendCell(kNumber, Number(signals[SignalId::kStepSeconds]), out);
  AppendCell("", job.running ? "<span class=\"ok\">running</span>" : "ended", out);
  out.append("</tr>\n");
}

using Jobs = std::vector<const JobStatus*>;

void AppendMore(size_t more, std::string& out) {
  if (more == 0) return;
  out.append("<p class=\"soft\">").append(std::to_string(more));
  out.append(more == 1 ? " more job is" : " more jobs are");
  out.append(" known here; <a href=\"/verdict\">/verdict</a> has all of them.</p>\n");
}

void AppendJobTable(const Jobs& jobs, size_t more, std::string& out) {
  out.append("<h2>Jobs</h2>\n");
  if (jobs.empty()) {
    out.append(
        "<div class=\"card soft\">No job has been seen on this node yet. "
        "<code>rankscope run -- CMD</code> watches one.</div>\n");
    return;
  }
  out.append(
      "<div class=\"card wide\"><table><thead><tr><th>Job</th><th>Verdict</th><th>Confidence</th>"
      "<th>State</th><th>Phase</th><th class=\"number\">Step</th><th class=\"number\">Loss</th>"
      "<th class=\"number\">s / step</th><th></th></tr></thead><tbody>\n");
  for (size_t i = 0; i < jobs.size(); ++i) AppendJobRow(*jobs[i], i, out);
  out.append("</tbody></table></div>\n");
  AppendMore(more, out);
}

// A headed list of lines, already HTML; nothing at all when there are none.
void AppendList(std::string_view title, const std::vector<std::string>& lines, std::string& out) {
  if (lines.empty()) return;
  out.append("<h3>").append(title).append("</h3><ul>\n");
  for (const std::string& line : lines) out.append("<li>").append(line).append("</li>\n");
  out.append("</ul>\n");
}

std::string EvidenceLine(const proto::Evidence& evidence) {
  std::string line = Escaped(evidence.text());
  line.append(" <span class=\"soft\">(").append(Word(evidence.store())).append(")</span>");
  if (evidence.cite().has_log()) {
    const proto::LogRef& log = evidence.cite().log();
    line.append("<br><code>").append(Escaped(log.line())).append("</code> <span class=\"soft\">");
    line.append(Escaped(log.stream())).append(" @ ").append(std::to_string(log.offset()));
    line.append("</span>");
  }
  return line;
}

void AppendClaims(const proto::Verdict& verdict, std::string& out) {
  std::vector<std::string> lines;
  for (const auto& evidence : verdict.shows()) lines.push_back(EvidenceLine(evidence));
  AppendList("Shows", std::exchange(lines, {}), out);
  for (const auto& implication : verdict.implies()) lines.push_back(Escaped(implication.text()));
  AppendList("Implies", std::exchange(lines, {}), out);
  for (const auto& open : verdict.cannot_decide()) {
    std::string line = Escaped(open.question());
    if (open.why() != proto::UP) {
      line.append(" <span class=\"soft\">(needs ").append(StoreName(open.needs()));
      line.append(" data: ").append(LackWords(open.needs(), open.why())).append(")</span>");
    }
    lines.push_back(std::move(line));
  }
  AppendList("Cannot decide", std::exchange(lines, {}), out);
  for (const auto& step : verdict.resolution().immediate()) lines.push_back(Escaped(step));
  AppendList("Do now", std::exchange(lines, {}), out);
  for (const auto& test : verdict.next_tests()) {
    lines.push_back("<code>" + Escaped(test.command()) + "</code> " + Escaped(test.expects()));
  }
  AppendList("Tests that would decide", std::exchange(lines, {}), out);
  for (const auto& warning : verdict.warnings()) {
    lines.push_back("<span class=\"warning\">" + Escaped(warning.kind()) + "</span> " +
                    Escaped(warning.text()));
  }
  AppendList("Warnings", lines, out);
}

void AppendRuledOut(const proto::Verdict& verdict, std::string& out) {
  std::string lines;
  size_t count = 0;
  for (const auto& family : verdict.families()) {
    if (family.state() != proto::FamilyState::RULED_OUT) continue;
    ++count;
    lines.append("<li>").append(Escaped(family.code())).append(" ");
    lines.append(families::FindFamily(family.code()).family);
    lines.append(" <span class=\"soft\">").append(Escaped(family.by())).append("</span></li>\n");
  }
  if (count == 0) return;
  out.append("<h3>Ruled out</h3><details><summary>").append(std::to_string(count));
  out.append(count == 1 ? " family" : " families").append("</summary><ul>\n");
  out.append(lines).append("</ul></details>\n");
}

// Whose GPUs are drawn: those of running jobs first, then the others as long as there is room.
// A GPU takes about 4 kB.
std::vector<bool> Drawn(const Jobs& jobs) {
  constexpr size_t kMaxGpus = 128;
  std::vector<bool> drawn(jobs.size(), false);
  size_t gpus = 0;
  for (const bool running : {true, false}) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      const size_t its = jobs[i]->gpu_history.size();
      if (jobs[i]->running != running || gpus + its > kMaxGpus) continue;
      gpus += its;
      drawn[i] = true;
    }
  }
  return drawn;
}

void AppendJob(const JobStatus& job, size_t index, bool drawn, const metrics::Published& published,
               std::string& out) {
  const proto::Verdict& verdict = job.verdict;
  out.append("<section class=\"card\" id=\"").append(Anchor(index)).append("\">\n");
  out.append("<p class=\"title\"><b>").append(Escaped(job.job_id)).append("</b>");
  AppendChip(verdict, out);
  out.append("<span class=\"soft\">confidence ").append(ConfidenceWords(verdict));
  if (verdict.onset_ns() != 0) out.append(", since ").append(Rfc3339(verdict.onset_ns()));
  if (const std::string ended = DispositionWords(verdict); !ended.empty())
    out.append(", the run ").append(Escaped(ended));
  if (!job.user.empty()) out.append(", user ").append(Escaped(job.user));
  if (job.world_size > 0) out.append(", ").append(std::to_string(job.world_size)).append(" ranks");
  out.append("</span></p>\n");
  if (!job.command.empty()) {
    out.append("<p class=\"soft\"><code>").append(Escaped(job.command)).append("</code></p>\n");
  }
  AppendTimeline(job.timeline, published.wall_seconds, out);
  AppendClaims(verdict, out);
  AppendRuledOut(verdict, out);
  if (drawn) {
    AppendGpuCharts(job, published.agent.sources, out);
  } else {
    out.append(
        "<p class=\"soft\">GPU charts of this job are omitted: too many jobs use GPUs.</p>\n");
  }
  const std::string id = PercentEncode(job.job_id);
  out.append("<p>");
  for (const char* page : {"verdict", "evidence", "events"}) {
    out.append("<a href=\"/").append(page).append("?job_id=").append(id).append("\">");
    out.append(page).append("</a> &nbsp; ");
  }
  out.append("</p>\n</section>\n");
}

void AppendSources(const metrics::AgentStatus& agent, std::string& out) {
  out.append(
      "<h2>Sources</h2>\n<div class=\"card wide\"><table><thead><tr><th>Source</th><th>State</th>"
      "<th class=\"number\">Observations</th><th class=\"number\">Lost</th><th>Reason</th></tr>"
      "</thead><tbody>\n");
  for (const metrics::SourceStatus& source : agent.sources) {
    const bool up = source.state == Availability::kUp;
    const bool down = source.state == Availability::kDown || source.state == Availability::kStale;
    out.append("<tr><td>").append(Escaped(source.name)).append("</td><td class=\"");
    out.append(up ? "ok" : down ? "critical" : "none").append("\">");
    out.append(SourceWord(static_cast<proto::Availability>(source.state))).append("</td>");
    AppendCell(" class=\"number\"", std::to_string(source.observations), out);
    AppendCell(" class=\"number\"", std::to_string(source.lost), out);
    AppendCell(" class=\"text\"", Escaped(source.reason), out);
    out.append("</tr>\n");
  }
  out.append("</tbody></table></div>\n");
}

void AppendHeader(const metrics::Published& published, std::string& out) {
  const metrics::AgentStatus& agent = published.agent;
  out.append("<header><h1>rankscope</h1><p>").append(Escaped(agent.node));
  if (!agent.ready) {
    out.append(" <span class=\"warning\">not ready: ").append(Escaped(agent.not_ready_reason));
    out.append("</span>");
  }
  out.append(
      "</p><nav><a href=\"/verdict\">verdicts</a><a href=\"/metrics\">metrics</a>"
      "<a href=\"/-/ready\">ready</a></nav></header>\n");
}

}  // namespace

void AppendEscaped(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const size_t hidden = HiddenSequence(text.substr(i))) {
      AppendWrittenOut(CodePoint(text.substr(i), hidden), out);
      i += hidden - 1;
      continue;
    }
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&quot;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        // Control characters are not allowed in HTML; terminals' colours come as them.
        out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
    }
  }
}

std::string_view StyleSheet() {
  return kStyle;
}

std::string ContentSecurityPolicy() {
  return "default-src 'none'; style-src 'sha256-" + std::string(kStyleSha256) +
         "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

std::vector<size_t> ShownOnPage(const metrics::JobList& jobs) {
  std::vector<size_t> places(jobs.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    const JobStatus& x = *jobs[a];
    const JobStatus& y = *jobs[b];
    if (x.running != y.running) return x.running;
    return !x.running && x.verdict.updated_ns() > y.verdict.updated_ns();
  });
  places.resize(std::min(places.size(), kMostJobsOfPage));
  return places;
}

std::string StatusPage(const metrics::Published& published) {
  std::string out;
  Jobs jobs;
  for (const size_t place : ShownOnPage(published.jobs))
    jobs.push_back(published.jobs[place].get());
  out.reserve(kStyle.size() + 4096 * (1 + jobs.size()));
  out.append(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<meta http-equiv=\"refresh\" content=\"15\"><title>rankscope");
  if (!published.agent.node.empty()) out.append(" on ").append(Escaped(published.agent.node));
  out.append("</title><style>").append(kStyle).append("</style></head>\n<body>\n");
  AppendHeader(published, out);
  out.append("<main>\n");
  AppendJobTable(jobs, published.jobs.size() - jobs.size(), out);
  const std::vector<bool> drawn = Drawn(jobs);
  for (size_t i = 0; i < jobs.size(); ++i) AppendJob(*jobs[i], i, drawn[i], published, out);
  for (const metrics::SourceStatus& source : published.agent.sources) {
    if (source.slurm != nullptr) AppendSlurmJobs(*source.slurm, published.wall_seconds, out);
  }
  AppendSources(published.agent, out);
  out.append("</main>\n<footer>rankscope ").append(Escaped(published.agent.version));
  if (published.wall_seconds > 0) {
    out.append(", as of ").append(Rfc3339(std::llround(published.wall_seconds * 1e9)));
  }
  out.append("</footer>\n</body></html>\n");
  return out;
}

}  // namespace rankscope::web
