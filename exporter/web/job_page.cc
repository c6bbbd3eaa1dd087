// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/job_page.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "detectors/model/percent_encode.h"
#include "exporter/web/gpu_charts.h"
#include "exporter/web/html.h"
#include "exporter/web/job_marks.h"
#include "exporter/web/job_times.h"
#include "exporter/web/rank_strip.h"
#include "exporter/web/shell.h"

namespace rankscope::web {
namespace {

using Lines = std::vector<std::string>;  // already HTML

void AppendLines(std::string_view tag, const Lines& lines, std::string& out) {
  out.append("<").append(tag).append(">\n");
  for (const std::string& line : lines) out.append("<li>").append(line).append("</li>\n");
  out.append("</").append(tag).append(">\n");
}

// A headed list; nothing at all when there are no lines.
void AppendSection(std::string_view title, const Lines& lines, std::string& out) {
  if (lines.empty()) return;
  out.append("<h2>").append(title).append("</h2>\n");
  AppendLines("ul", lines, out);
}

void AppendFolded(std::string_view id, const std::string& title, const Lines& lines,
                  std::string& out) {
  if (lines.empty()) return;
  out.append("<details id=\"").append(id).append("\"><summary>").append(title);
  out.append("</summary>\n");
  AppendLines("ul", lines, out);
  out.append("</details>\n");
}

double Seconds(int64_t wall_ns) {
  return wall_ns == 0 ? kUnknown : static_cast<double>(wall_ns) * 1e-9;
}

template <typename Values>
void AppendNamed(std::string_view one, std::string_view many, const Values& values,
                 std::string& out) {
  constexpr size_t kMost = 8;
  if (values.empty()) return;
  const auto count = static_cast<size_t>(values.size());
  if (!out.empty()) out.append(", ");
  out.append(count == 1 ? one : many).append(" ");
  for (size_t i = 0; i < std::min(count, kMost); ++i)
    out.append(i == 0 ? "" : ", ").append(values[static_cast<int>(i)]);
  if (count > kMost) out.append(" and ").append(std::to_string(count - kMost)).append(" more");
}

// "ranks 3-5, node n1, GPU GPU-fa4e"; empty where the verdict names nobody.
std::string Culprit(const proto::Verdict& verdict) {
  constexpr size_t kRanges = 8;
  std::string who = RankWords(verdict.ranks(), kRanges);
  AppendNamed("node", "nodes", verdict.nodes(), who);
  AppendNamed("GPU", "GPUs", verdict.gpus(), who);
  return who;
}

void AppendFact(std::string_view name, const std::string& html, std::string& out) {
  if (html.empty()) return;
  out.append("<div><dt>").append(name).append("</dt><dd>").append(html).append("</dd></div>\n");
}

std::string TimeHtml(double wall_seconds, double now) {
  std::string html;
  if (!std::isnan(wall_seconds)) AppendTime(wall_seconds, now, html);
  return html;
}

std::string Progress(const JobStatus& job) {
  const JobSignals& signals = job.signals;
  std::string text;
  const auto add = [&text](std::string_view name, double value, std::string_view unit) {
    if (std::isnan(value)) return;
    text.append(text.empty() ? "" : ", ").append(name).append(NumberText(value)).append(unit);
  };
  add("step ", signals[SignalId::kStep], "");
  if (!text.empty() && !std::isnan(signals[SignalId::kMaxSteps]))
    text.append(" of ").append(NumberText(signals[SignalId::kMaxSteps]));
  add("loss ", signals[SignalId::kLoss], "");
  add("", signals[SignalId::kStepSeconds], " s per step");
  return text;
}

void AppendFacts(const JobStatus& job, double now, std::string& out) {
  const proto::Verdict& verdict = job.verdict;
  const double began = BeganAt(job), ended = EndedAt(job);
  const double onset = Seconds(verdict.onset_ns());
  out.append("<dl class=\"facts\">\n");
  AppendFact("Culprit", Escaped(Culprit(verdict)), out);
  std::string since = TimeHtml(onset, now);
  if (!since.empty() && job.running && now > onset)
    since.append(" (").append(LengthText(now - onset)).append(" ago)");
  AppendFact("Since", since, out);
  if (!verdict.code().empty()) AppendFact("How sure", Escaped(ConfidenceWords(verdict)), out);
  AppendFact("Whose matter",
             verdict.domain() == proto::DOMAIN_UNSPECIFIED ? "" : Escaped(Word(verdict.domain())),
             out);
  const std::string disposition = DispositionWords(verdict);
  AppendFact("The run",
             job.running           ? "goes on"
             : disposition.empty() ? "has ended"
                                   : Escaped(disposition),
             out);
  AppendFact("Began", TimeHtml(began, now), out);
  const double until = job.running ? now : ended;
  if (until >= began) AppendFact("Duration", LengthText(until - began), out);
  AppendFact("Progress", Progress(job), out);
  AppendFact("User", Escaped(job.user), out);
  AppendFact("Partition", Escaped(job.facts.partition), out);
  AppendFact("Nodes", Escaped(job.facts.nodes), out);
  if (job.world_size > 0) AppendFact("Ranks", std::to_string(job.world_size), out);
  out.append("</dl>\n");
}

// The sentence that says what is the matter.
std::string Summary(const proto::Verdict& verdict) {
  if (verdict.code().empty()) return "Nothing has been decided yet.";
  if (verdict.implies_size() > 0) return verdict.implies(0).text();
  return std::string(families::FindFamily(verdict.code()).what);
}

void AppendHead(const JobStatus& job, double now, std::string& out) {
  const proto::Verdict& verdict = job.verdict;
  out.append("<h1>Job ").append(Escaped(job.job_id)).append(" ");
  AppendChip(verdict, out);
  out.append("</h1>\n<p class=\"lead\">").append(Escaped(Summary(verdict))).append("</p>\n");
  AppendFacts(job, now, out);
}

void AppendDoNow(const proto::Verdict& verdict, std::string& out) {
  const proto::Resolution& resolution = verdict.resolution();
  Lines lines;
  for (const std::string& step : resolution.immediate()) lines.push_back(Escaped(step));
  if (!lines.empty()) {
    out.append("<section class=\"card now\"><h2>What to do now</h2>\n");
    AppendLines("ol", std::exchange(lines, {}), out);
    for (const std::string& step : resolution.structural()) lines.push_back(Escaped(step));
    AppendFolded("structural", "so that it does not happen again", std::exchange(lines, {}), out);
    for (const std::string& step : resolution.verify()) lines.push_back(Escaped(step));
    AppendFolded("verify", "how to see that it helped", lines, out);
    out.append("</section>\n");
  }
}

std::string EvidenceHtml(const proto::Evidence& evidence) {
  std::string line = "<span id=\"e" + std::to_string(evidence.id()) + "\">";
  AppendEscaped(evidence.text(), line);
  line.append("</span> <span class=\"soft\">(").append(Word(evidence.store())).append(")</span>");
  const proto::Citation& cite = evidence.cite();
  std::string quoted, place;
  if (cite.has_log()) {
    quoted = cite.log().line();
    place = cite.log().stream() + " @ " + std::to_string(cite.log().offset());
  } else if (cite.has_kernel()) {
    quoted = cite.kernel().text();
    place = cite.kernel().source();
  } else if (cite.has_promql()) {
    quoted = cite.promql();
  }
  if (quoted.empty()) return line;
  line.append("<br><code>").append(Escaped(quoted)).append("</code>");
  if (!place.empty())
    line.append(" <span class=\"soft\">").append(Escaped(place)).append("</span>");
  return line;
}

const proto::Evidence* FindEvidence(const proto::Verdict& verdict, uint32_t id) {
  for (const proto::Evidence& evidence : verdict.shows()) {
    if (evidence.id() == id) return &evidence;
  }
  return nullptr;
}

// From the event that began it to what was seen last.
void AppendChain(const proto::Verdict& verdict, double now, std::string& out) {
  if (verdict.cause_chain_size() < 2) return;
  out.append("<h2>Chain of events</h2>\n<ol class=\"chain\">\n");
  for (const proto::Cause& cause : verdict.cause_chain()) {
    const proto::Evidence* const evidence = FindEvidence(verdict, cause.evidence());
    if (evidence == nullptr) continue;
    out.append("<li class=\"").append(cause.role() == proto::Cause::ROOT ? "root" : "");
    out.append("\"><b>").append(Escaped(Word(cause.role()))).append("</b> ");
    if (const std::string at = TimeHtml(Seconds(evidence->begin_ns()), now); !at.empty())
      out.append(at).append(" ");
    out.append(Escaped(evidence->text())).append("</li>\n");
  }
  out.append("</ol>\n");
}

void AppendClaims(const proto::Verdict& verdict, double now, std::string& out) {
  Lines lines;
  for (const auto& evidence : verdict.shows()) lines.push_back(EvidenceHtml(evidence));
  AppendSection("What is seen", std::exchange(lines, {}), out);
  AppendChain(verdict, now, out);
  for (const auto& implication : verdict.implies()) lines.push_back(Escaped(implication.text()));
  AppendSection("What it implies", std::exchange(lines, {}), out);
  for (const auto& open : verdict.cannot_decide()) {
    std::string line = Escaped(open.question());
    if (open.why() != proto::UP) {
      line.append(" <span class=\"soft\">(needs ").append(StoreName(open.needs()));
      line.append(" data: ").append(LackWords(open.needs(), open.why())).append(")</span>");
    }
    lines.push_back(std::move(line));
  }
  AppendSection("What cannot be decided", std::exchange(lines, {}), out);
  for (const auto& test : verdict.next_tests()) {
    lines.push_back("<code>" + Escaped(test.command()) + "</code> " + Escaped(test.expects()));
  }
  AppendSection("Tests that would decide", std::exchange(lines, {}), out);
  for (const auto& warning : verdict.warnings()) {
    lines.push_back("<span class=\"warning\">" + Escaped(warning.kind()) + "</span> " +
                    Escaped(warning.text()));
  }
  AppendSection("Warnings", lines, out);
}

void AppendOtherFamilies(const proto::Verdict& verdict, std::string& out) {
  Lines ruled_out, undecided;
  for (const auto& family : verdict.families()) {
    if (family.state() == proto::FamilyState::RULED_IN) continue;
    const bool out_of_it = family.state() == proto::FamilyState::RULED_OUT;
    std::string line = "<b>" + Escaped(family.code()) + "</b> ";
    line.append(families::FindFamily(family.code()).family);
    line.append(" <span class=\"soft\">").append(Escaped(family.by())).append("</span>");
    (out_of_it ? ruled_out : undecided).push_back(std::move(line));
  }
  if (ruled_out.empty() && undecided.empty()) return;
  out.append("<h2>Other families</h2>\n");
  const auto title = [](size_t count, const char* what) {
    return std::to_string(count) + (count == 1 ? " family " : " families ") + what;
  };
  AppendFolded("ruled-out", title(ruled_out.size(), "ruled out"), ruled_out, out);
  AppendFolded("undecided", title(undecided.size(), "not decidable from here"), undecided, out);
}

void AppendLimits(const proto::Verdict& verdict, std::string& out) {
  Lines lines;
  for (const std::string& note : verdict.data_quality().notes()) lines.push_back(Escaped(note));
  AppendSection("What limits this answer", lines, out);
}

}  // namespace

std::string JobPage(const JobStatus& job, const metrics::Published& published) {
  const proto::Verdict& verdict = job.verdict;
  const double now = published.wall_seconds;
  std::string out;
  out.reserve(StyleSheet().size() + Script().size() + (32 << 10));
  BeginPage("Job " + job.job_id + " " + verdict.code() + " \u2013 rankscope", published, out);
  AppendHead(job, now, out);
  AppendDoNow(verdict, out);
  AppendClaims(verdict, now, out);
  AppendRanks(job, out);
  AppendTimeline(job.timeline, now, out);
  AppendGpuCharts(job, published.agent.sources, out);
  AppendLimits(verdict, out);
  AppendOtherFamilies(verdict, out);
  if (!job.command.empty()) {
    out.append("<h2>Command</h2>\n<p><code>").append(Escaped(job.command)).append("</code></p>\n");
  }
  out.append("<p>The same as data:");
  for (const char* page : {"verdict", "evidence", "events"}) {
    out.append(" <a href=\"/").append(page).append("?job_id=");
    out.append(PercentEncode(job.job_id)).append("\">").append(page).append("</a>");
  }
  out.append("</p>\n");
  EndPage(published, out);
  return out;
}

}  // namespace rankscope::web
